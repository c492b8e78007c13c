"""How options are declared, and how words become their values."""
