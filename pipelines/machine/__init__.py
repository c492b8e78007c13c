"""What this machine grants."""
