"""WRITE: the task in one sentence.

WRITE: what the function gets and returns, and what is wrong with the one below.
"""

TARGETS = {"memory": 1.0}  # WRITE: what is required


def double(x):
    return x
