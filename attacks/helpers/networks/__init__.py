"""Inversion, transfer and hijacking of networks."""
