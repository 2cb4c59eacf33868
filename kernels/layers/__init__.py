"""Layers: forward and backward passes, hand-written."""
