"""HOW: algorithms, one file each, in families. `catalogue.py` lists them, `algorithm.py` says what each declares."""

from typing import Any

__all__ = ["CATALOGUE", "FAMILIES", "FAMILY_IDEAS", "family", "find", "idea", "module", "names"]


def __getattr__(name: str) -> Any:
    """Return a name of the catalogue, which is loaded at first use: `python -m algorithms` must be able to handle
    Ctrl-C before that.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import algorithms.catalogue as catalogue

    return getattr(catalogue, name)
