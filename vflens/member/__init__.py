"""The parts of every process of a federation: gate, recovery, event loop."""
