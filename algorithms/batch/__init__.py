"""Batch: one step for the whole batch, computed by whoever is free."""
