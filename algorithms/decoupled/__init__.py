"""Modules of one model learn at once, without waiting for each other's errors."""
