"""The algorithms: one file each, grouped in families.

`catalogue.py` lists them, and `algorithm.py` defines what each of them declares.
"""

from typing import Any

__all__ = ["CATALOGUE", "FAMILIES", "FAMILY_IDEAS", "family", "find", "idea", "module", "names"]


def __getattr__(name: str) -> Any:
    """Return the attribute `name` of the catalogue, which is imported at its first use.

    Importing it earlier would delay the moment from which `python -m algorithms` handles Ctrl-C.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import algorithms.catalogue as catalogue

    return getattr(catalogue, name)
