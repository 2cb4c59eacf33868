"""How far the planner's predictions are from published throughput, in words and rows."""

from typing import NamedTuple

from experiments.wording import units
from theory.planner import published
from theory.planner.memory_use import TIGHT
from theory.planner.step_time import utilisation

ERROR = "Nine of ten published runs were within 8 % of the prediction of a fit to the other models"
SPLIT = ", and all 13 that split their model within 13 % of the prediction"
UNSEEN = {"median error": "2.9 %", "nine of ten within": "8 %", "within 20 %": "96 %"}
"""Leave-one-model-out errors: each model is predicted by a fit to all others. Computing them takes minutes; a slow test
does so."""


class Dot(NamedTuple):
    """A published configuration, and its utilisation (MFU) as published and as predicted."""

    source: str
    name: str
    published: float
    predicted: float
    remark: str  # why it may be off, "" if nothing is known


def dots() -> list[Dot]:
    """Return all published configurations with their predictions."""
    rows = published.table()
    shares = published.memory_shares(rows)
    found = []
    true, ours = (utilisation(rows.setup, rates) for rates in (rows.rates, published.predict(rows)))
    for i in range(len(rows)):
        name = f"{rows.models[i]}, {units.count(rows.setup.model.sequence[i])} tokens, {rows.gpus[i]} {rows.names[i]}"
        remark = "inconsistent with the rows next to it in the same source" if rows.inconsistent[i] else ""
        remark = remark or ("memory is nearly full" if shares[i] > TIGHT else "")
        found.append(Dot(str(rows.sources[i]), name, float(true[i]), float(ours[i]), remark))
    return found


def error_texts(errors: published.Errors) -> dict[str, str]:
    """Return errors as columns to print."""
    return {
        "median error": units.percent(errors.median),
        "nine of ten within": units.share(errors.ninth),
        "within 20 %": units.share(errors.within),
    }


def accuracy() -> list[dict[str, str]]:
    """Return the errors of the predictions and of two baselines, as rows to print."""
    rows = published.table()
    guesses = {
        "this planner, fitted to these rows": published.predict(rows),
        "utilisation of the most similar other model": published.leave_out(rows, rows.models, published.nearest),
        "one utilisation for each GPU": published.leave_out(rows, rows.models, published.constant),
    }
    found = {name: published.errors(rows, guess) for name, guess in guesses.items()}
    rows_shown = [{"predicted by": name, **error_texts(errors)} for name, errors in found.items()]
    unseen = {"predicted by": "this planner, fitted to the other models", **UNSEEN}
    return [rows_shown[0], unseen, *rows_shown[1:]]
