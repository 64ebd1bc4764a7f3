"""Tables in files, and which column is what."""
