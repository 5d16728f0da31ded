"""What the record of a run tells: the views of attacks, and the parameters of every round."""
