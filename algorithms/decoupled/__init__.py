"""Modules of one model learn in parallel, without waiting for each other's errors."""
