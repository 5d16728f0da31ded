"""Every attack against every defence, strength and seed."""
