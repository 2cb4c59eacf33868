"""Tables as pandas has them. It is imported with the first: the page that has none is there a quarter second sooner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas


def frame(table: Mapping[str, Sequence] | Sequence[Mapping]) -> pandas.DataFrame:
    """Return a table, given by its columns or its rows, as a DataFrame."""
    import pandas

    return pandas.DataFrame(table)
