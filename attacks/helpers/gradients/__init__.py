"""Inverting the gradient of a whole model: the numerics of an adversary in the server of a federation."""
