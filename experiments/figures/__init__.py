"""The papers' figures as functions: data, the paper's numbers beside ours, a plot."""
