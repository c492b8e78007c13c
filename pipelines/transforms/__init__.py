"""The public transforms, and what goes between them."""
