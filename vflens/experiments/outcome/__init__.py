"""What attacks find, as one noun: a finding, its state, and the only sentences about one."""
