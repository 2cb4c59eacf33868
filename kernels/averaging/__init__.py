"""Averaging: kernels that combine parameter vectors."""
