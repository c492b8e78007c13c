"""tf.train.Example bytes, TFRecord framing, and sorted runs of them."""
