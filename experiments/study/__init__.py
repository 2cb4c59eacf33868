"""Schedules and partitions studied without training."""
