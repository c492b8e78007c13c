"""The options of the commands, and those that are passed on to Beam."""
