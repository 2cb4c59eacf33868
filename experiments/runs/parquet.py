"""Tables of columns in Parquet files: writing them, and reading them with types, sizes and ranges checked.

Columns are views of Arrow arrays in both directions; Arrow's own conversions would import pandas, which takes a second.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

MAX_ROWS = 50_000_000  # of one table
NONE: Mapping[str, str] = {}


def write_table(folder: Path, table: str, columns: Mapping[str, str], values: Mapping[str, np.ndarray]) -> None:
    """Write the `columns` (name: NumPy type) of `values` to a file in `folder`. Raise OSError if that fails."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [_arrow(values[column], dtype) for column, dtype in columns.items()]
    pq.write_table(pa.table(arrays, list(columns)), folder / f"{table}.parquet", compression="zstd")


def read_table(
    folder: Path, table: str, columns: Mapping[str, str], later: Mapping[str, str] = NONE
) -> dict[str, np.ndarray]:
    """Return the columns of a file in `folder`. Raise ValueError if it is missing, damaged or has other columns.

    `later` names columns that older files lack, each with the column whose numbers are then used instead.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(folder / f"{table}.parquet") as file:
            if file.metadata.num_rows > MAX_ROWS:
                raise ValueError(f"{table}.parquet has {file.metadata.num_rows} rows; at most {MAX_ROWS} are read.")
            wanted = {column: pa.from_numpy_dtype(np.dtype(dtype)) for column, dtype in columns.items()}
            found = {field.name: field.type for field in file.schema_arrow}
            lacking = later.keys() - found.keys()
            if found != {column: kind for column, kind in wanted.items() if column not in lacking}:
                raise ValueError(f"{table}.parquet has the columns {', '.join(found)}; expected {', '.join(wanted)}.")
            data = file.read()
    except FileNotFoundError:
        raise ValueError(f"{table}.parquet is missing.") from None
    except pa.ArrowException as error:
        raise ValueError(f"{table}.parquet: {error}") from None
    read = {column: later[column] if column in lacking else column for column in columns}
    if any(data[column].null_count for column in read.values()):
        raise ValueError(f"{table}.parquet has empty cells.")
    return {column: _numpy(data[source].combine_chunks()) for column, source in read.items()}


def check_range(tables: Mapping[str, Mapping[str, np.ndarray]], table: str, column: str, end: int) -> None:
    """Raise ValueError if a column has a number below 0, or `end` or more."""
    values = tables[table][column]
    if len(values) and not (values.min() >= 0 and values.max() < end):
        allowed = f"it must be 0 to {end - 1}" if end else f"run.json lists no {column}, so rows are not allowed"
        raise ValueError(f"{table}.parquet: {column} is {values.min()} to {values.max()}; {allowed}.")


def _numpy(column) -> np.ndarray:
    """Return an Arrow array without empty cells as a NumPy array: a view, except for booleans."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):  # one bit each, a type that DLPack does not have
        return np.from_dlpack(column.cast(pa.uint8())).view(bool)
    return np.from_dlpack(column)


def _arrow(column: np.ndarray, dtype: str):
    """Return `column` as an Arrow array of this type: a view if possible. Booleans are packed, one bit each."""
    import pyarrow as pa

    column = np.ascontiguousarray(column, dtype)
    bits = np.packbits(column, bitorder="little") if dtype == "?" else column
    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(bits)])
