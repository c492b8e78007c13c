"""What goes along with a row's text: further columns, and labels."""
