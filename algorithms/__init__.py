"""HOW: algorithms, one file each, in families. `catalogue.py` lists them, `algorithm.py` says what each declares."""

from algorithms.catalogue import CATALOGUE, FAMILIES, family, find, idea, module, names

__all__ = ["CATALOGUE", "FAMILIES", "family", "find", "idea", "module", "names"]
