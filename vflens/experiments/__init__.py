"""Dealer, launcher, runs, reports and comparisons."""
