"""The methods of the arena: a file each, with `fit` and `predict`."""
