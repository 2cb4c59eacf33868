"""Compression: encode a vector in few numbers or few bits, and decode it."""
