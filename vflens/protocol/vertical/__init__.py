"""What the parties of a vertical run agree on and send: aligned rows, embeddings, disclosures."""
