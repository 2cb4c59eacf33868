"""One run: an Experiment specifies it, `run` makes it, a Run holds all that was recorded.

Experiment (frozen, validated, one JSON, one URL, one command line) -> run() -> Run -> store, compare, export.
"""
