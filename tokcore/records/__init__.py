"""tf.train.Example bytes, TFRecord framing, and the keys that order them."""
