"""Runs and other work in processes of their own, for many readers at once."""
