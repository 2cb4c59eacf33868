"""The page of kernels: formulas, times, and GPU kernels thread by thread."""
