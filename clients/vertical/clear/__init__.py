"""A data party's side of training in the clear: embeddings go one way, gradients the other."""
