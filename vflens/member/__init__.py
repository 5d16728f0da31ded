"""What every process of a federation is made of: gate, recovery, event loop."""
