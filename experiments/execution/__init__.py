"""Check an experiment, run it on its cluster and turn it into a Run."""
