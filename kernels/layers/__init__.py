"""Layers: forward and backward passes, written by hand."""
