"""Specification: what an experiment is, what there is to choose from, and what this machine is."""
