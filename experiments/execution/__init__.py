"""Execution: an experiment is checked, runs on its cluster, and becomes a Run."""
