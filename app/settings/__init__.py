"""The settings of an experiment: what widgets they are, what is chosen, and whether it can run."""
