"""Sparse problems, row by row, and updates of memory shared by several threads."""
