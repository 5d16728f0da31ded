"""The vocabulary of VFLens: what a party holds, releases, sees and estimates."""
