"""The two extension points, attacks and defences, and the view of an adversary."""
