"""How the rows of a dataset are stored: a module for each format, and `formats` that lists them."""
