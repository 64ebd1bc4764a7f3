"""What a fit has learned, as plain data, and what is made of it."""
