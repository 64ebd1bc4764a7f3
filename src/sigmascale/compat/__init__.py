"""Our numbers under the names of other libraries; each is imported by its own name."""
