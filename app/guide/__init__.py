"""Guidance for newcomers: the first screen, a tour, questions, and predictions."""
