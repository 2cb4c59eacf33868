"""The model is cut in stages, and batches stream through."""
