"""Files wherever Beam reaches them, and who may write to which."""
