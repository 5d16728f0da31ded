"""The same steps of logistic regression in other frameworks, each in an environment of its own."""
