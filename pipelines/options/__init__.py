"""Values of options, ours and those of Beam."""
