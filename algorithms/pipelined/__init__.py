"""Pipelines: the model is cut into stages, and batches stream through."""
