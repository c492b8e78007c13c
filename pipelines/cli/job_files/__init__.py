"""Job files: what a command line says, as TOML."""
