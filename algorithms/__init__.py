"""HOW: algorithms, one file each, in families. `catalogue.py` lists them, `algorithm.py` says what each declares."""

from algorithms.catalogue import CATALOGUE, family, find, idea, module, names

__all__ = ["CATALOGUE", "family", "find", "idea", "module", "names"]
