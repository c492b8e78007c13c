"""Pure algorithms over strings, bytes and arrays."""
