"""Rows on devices: PyTorch, CuPy and JAX, and whoever speaks the array API standard.

Rows are checked, sorted, looked up and summed where they are; only sums and limits come
to the host. No library is imported here: an array brings its own.
"""
