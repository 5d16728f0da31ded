"""Training on additive shares modulo 2⁶⁴: one step of two computing parties, and of the dealer of masks."""
