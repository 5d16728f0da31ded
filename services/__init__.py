"""Thin gRPC servicers: decode, delegate, encode; health and graceful stop."""
