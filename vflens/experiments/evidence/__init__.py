"""Evidence for people who decide: thresholds of a build, and the document of a data protection officer."""
