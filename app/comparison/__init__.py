"""Runs beside each other: as curves, in a table, in a race, over seeds, and in a sweep."""
