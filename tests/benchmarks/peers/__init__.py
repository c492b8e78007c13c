"""The tools that users would pick instead: one module each, which alone imports the tool."""
