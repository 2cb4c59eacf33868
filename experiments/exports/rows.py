"""A table of many runs as one file for other programs: a row per run, with its settings and its summary.

Parquet and Arrow keep the types of columns; every spreadsheet opens CSV.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.exports.export import write_file
from experiments.runs.record import RunOutcome

SUFFIXES = (".parquet", ".arrow", ".csv")


def check_suffix(name: str) -> None:
    """Raise ValueError unless the suffix of this file name is one of SUFFIXES."""
    if Path(name).suffix not in SUFFIXES:
        raise ValueError(f"table: {name[:60]!r} should end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")


def rows(outcomes: Sequence[RunOutcome], folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return a row per run: its folder, its settings in force, its status and its figures, in SI units.

    A setting that has the name of a figure gets a prefix: `setting_seconds`, because seconds is how long the run took.
    """
    figures = {name for one in outcomes for name in one.summary}
    return [
        {
            "run": folder.name,
            **{
                f"setting_{name}" if name in figures else name: value
                for name, value in one.experiment.in_force().items()
            },
            "status": one.status,
            **one.summary,
        }
        for one, folder in zip(outcomes, folders, strict=True)
    ]


def write_rows(outcomes: Sequence[RunOutcome], folders: Sequence[Path], file: Path) -> None:
    """Write a row per run to `file`, in the format that its suffix names. Raise OSError if that fails."""
    import pyarrow as pa

    found, out = rows(outcomes, folders), io.BytesIO()
    names = dict.fromkeys(name for row in found for name in row)
    table = pa.table({name: _column([row.get(name) for row in found]) for name in names})
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, out, compression="zstd")
    elif file.suffix == ".arrow":
        import pyarrow.feather as feather

        feather.write_feather(table, out, compression="uncompressed")
    else:
        import pyarrow.csv as csv

        csv.write_csv(table, out)
    write_file(file, out.getvalue())


def _column(values: list[Any]) -> Any:
    """Return the values as an Arrow array: of numbers or booleans if all known values are numbers or booleans, else of
    text.
    """
    import pyarrow as pa

    known = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in known) or all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    ):
        return pa.array(values)
    return pa.array([value if value is None else str(value) for value in values])
