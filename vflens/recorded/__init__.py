"""What the record of a run tells: the messages that crossed, views of attacks, parameters of each round."""
