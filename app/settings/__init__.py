"""The settings of an experiment: their widgets, the chosen values, and whether it can run."""
