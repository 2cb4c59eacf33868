"""Comparisons of runs: as curves, in a table, in a race, over seeds, and in a sweep."""
