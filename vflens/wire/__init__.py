"""gRPC: channel options, codec, links."""
