"""From figures to HTML pages."""
