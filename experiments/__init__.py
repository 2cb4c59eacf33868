"""One run: an Experiment says what, `run` does it, a Run holds all that was recorded.

Experiment (frozen, validated, one JSON, one URL, one command line) -> run() -> Run -> store, compare, export.
"""
