"""What lies on disk: manifests, counts, vocabularies, and when they are whole."""
