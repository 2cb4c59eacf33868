"""Whole-batch algorithms: each step takes all samples, in portions assigned to free workers."""
