"""Table: your own data, rows of numbers and words, one column of which is predicted.

`lockstep add FILE.csv` stores a table and prints its name; so does the workbench. Every feature is standardised to mean
0 and variance 1 over the training rows. Labels may be words or numbers; each distinct value is a class. With
`regression`, labels are numbers to be estimated, standardised like the features, and the loss is half the mean squared
error. Images keep their shape, so that a cnn can be trained on them.
"""

import numpy as np

import kernels
from knobs import knob
from workloads import models
from workloads.stored_table import cells, load
from workloads.supervised import Supervised
from workloads.table_samples import Missing, columns_shown, in_words, samples

ROWS = 5  # held-out rows that are shown, at most


class Settings(models.ModelKnobs):
    """The settings: the table, its label, the rows held out, and the model."""

    table: str = knob("", "name under which your table was stored when you added it", max_length=60)
    label: str = knob("", "column to predict; empty is the last one", max_length=100)
    regression: bool = knob(False, "estimate the label as a number, by squared error, instead of learning classes")
    missing: Missing = knob(
        "refuse", "what to do with missing numbers: refuse to train, leave their rows out, or use the column's mean"
    )
    held_out: float = knob(0.2, "fraction of the rows kept out of training and used for evaluation", ge=0.01, le=0.9)
    split: int = knob(0, "seed for choosing the held-out rows", ge=0, le=2**31 - 1)

    @property
    def numbers(self) -> int:
        """The number of cells of the table. Raises ValueError if there is no such table."""
        return cells(self.table)


def build(settings: Settings, dtype=np.float32) -> Supervised:
    """Return the workload.

    Raise ValueError if the table or the label does not exist, or if cells are missing and `missing` is "refuse".
    """
    s, table = settings, load(settings.table)
    try:
        x, target, classes, _, notes, row = samples(table, s.label, s.regression, s.missing)
    except ValueError as error:
        raise ValueError(f"table: {error}") from None
    order = np.random.default_rng(s.split).permutation(len(x))
    cut = len(x) - min(max(1, round(s.held_out * len(x))), len(x) - 1)
    train, test = order[:cut], order[cut:]
    x = _standard(x.astype(np.float64), train)
    images = table.shape and s.label in ("", table.names[-1])
    loss = kernels.squared_error if s.regression else kernels.softmax_cross_entropy
    unit = (0.0, 1.0)
    if s.regression:
        unit = float(target[train].mean()), float(target[train].std()) or 1.0
        target = _standard(target[:, None], train)
    model = models.build(s, table.shape if images else (x.shape[1],), len(classes) or 1, dtype, loss)
    notes = tuple(f"table: {note}" for note in (*table.notes, *notes))
    columns = columns_shown(table, s.label)
    return Supervised(
        "table", model, (x[train], target[train]), (x[test], target[test]), notes, labels=classes,
        image=table.shape[-2:] if images and len(table.shape) == 3 and table.shape[0] == 1 else (),
        columns=columns, examples=[in_words(table, row[one], columns) for one in test[:ROWS]], unit=unit,
    )  # fmt: skip


def _standard(x: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return the columns standardised to mean 0 and variance 1 over the training rows.

    A missing number becomes the mean.
    """
    known = ~np.isnan(x[train])
    count = np.maximum(known.sum(0), 1)
    centred = x - np.where(known, x[train], 0).sum(0) / count
    spread = np.sqrt((np.where(known, centred[train], 0) ** 2).sum(0) / count)
    return np.nan_to_num(centred) / np.where(spread > 0, spread, 1)
