"""Runs and other work, each in its own process, for many readers at once."""
