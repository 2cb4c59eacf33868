"""The workbench: choose an experiment, run it, and see the result."""
