"""The agreement of a run as a message: parties, model, and what each setting adds."""
