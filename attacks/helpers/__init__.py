"""What attacks have in common; no plug-in lies here."""
