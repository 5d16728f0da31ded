"""ε of a mechanism, measured: canaries go through it, and their guesses bound it from below."""
