"""Threads that share one vector of parameters, without waiting for each other."""
