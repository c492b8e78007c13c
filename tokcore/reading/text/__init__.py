"""TensorFlow NMT's input pipelines: from lines of text to batches, by TensorFlow's own operations."""
