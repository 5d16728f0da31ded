"""Attacks: one file each; the name of a plug-in is its file's stem."""
