"""The command `export`: a vocabulary as the files of another tool."""
