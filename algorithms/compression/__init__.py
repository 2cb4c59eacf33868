"""Gradient compression, for any algorithm that averages gradients or pushes them to a server."""

from algorithms.catalogue import COMPRESSIONS
from algorithms.catalogue import compression as find
from algorithms.catalogue import compression_module as module
from algorithms.parts.error_feedback import attach

__all__ = ["COMPRESSIONS", "attach", "find", "module"]
