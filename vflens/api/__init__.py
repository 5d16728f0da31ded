"""What ``import vflens`` offers besides the plug-ins' base classes: runs, estimates, audits, releases."""
