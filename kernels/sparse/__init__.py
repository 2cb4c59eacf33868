"""Sparse problems, row by row, and updates of memory that several threads share."""
