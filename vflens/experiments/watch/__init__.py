"""Pages that show runs while they go: one process for one owner, which reads folders and serves 127.0.0.1."""
