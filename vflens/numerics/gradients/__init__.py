"""What the gradient of a batch says of its rows and labels, in closed form or by a few equations."""
