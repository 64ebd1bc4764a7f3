"""Studies and measurements; `make bench`, `make studies` and `make arena` run them."""
