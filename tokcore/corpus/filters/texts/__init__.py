"""What filters look at in rows, and rows written anew: kernels and tables, no rules."""
