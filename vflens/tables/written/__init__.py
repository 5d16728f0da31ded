"""How people write numbers, dates and times."""
