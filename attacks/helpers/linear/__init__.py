"""Equations of linear models, and what was released of them."""
