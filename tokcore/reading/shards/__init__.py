"""The files of a dataset as rows of ids: TFRecords and Parquet, at any place or from end to end."""
