"""Threads that share one vector of parameters, and do not wait for each other."""
