"""The commands that show what a path holds: `inspect`, `report`, `compare` and `card`."""
