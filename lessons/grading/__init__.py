"""Grading of exercises: run an untrusted solution in a sandbox and judge its behaviour."""
