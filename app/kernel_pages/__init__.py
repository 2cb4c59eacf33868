"""The kernels page: formulas, times, and GPU kernels thread by thread."""
