"""What commands show: progress, tables, a live page."""
