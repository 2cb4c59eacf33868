"""Graded exercises: a stranger's solution in a sandbox, judged by what it does."""
