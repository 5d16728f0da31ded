"""What the record of a run tells: the messages that crossed, the views of attacks, parameters of every round."""
