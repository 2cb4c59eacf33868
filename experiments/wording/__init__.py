"""Wording: how numbers, experiments, ranks and places are written."""
