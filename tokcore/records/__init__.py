"""Files of results: tf.train.Examples in TFRecords, sorted runs of them, and the manifest."""
