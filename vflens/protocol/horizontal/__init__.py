"""What the parties of a horizontal run agree on and send: clients, updates, masks."""
