"""Compression: a vector becomes few numbers, or few bits, and comes back."""
