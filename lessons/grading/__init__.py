"""Grading of exercises: an untrusted solution runs in a sandbox, and its behaviour is judged."""
