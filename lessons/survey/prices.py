"""The table of costs: a row for each method, priced for the reader's model and cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import algorithms
from experiments.specification.catalogue import parse_device, parse_network
from experiments.wording import units
from lessons.survey import costs, idle
from lessons.survey.costs import SYMBOLS
from lessons.survey.methods import chapters_of, figures_of, sources
from lessons.survey.models import Model, Stack, UnequalLayers

Row = dict[str, Any]
ITEM = 4  # bytes of a number: float32
QUANTITIES = ("computation", "communication", "memory", "staleness", "idle", "late")
UNITS = {
    "computation": "FLOP",
    **dict.fromkeys(("communication", "memory", "server"), "B"),
    "staleness": "updates",
    "seconds": "s",
    **dict.fromkeys(("idle", "late"), "share"),
}
SAY = {"FLOP": units.flops, "B": units.size, "s": units.seconds, "updates": units.number, "share": units.share}


@dataclass(frozen=True)
class Cluster:
    """The reader's choices other than the model: workers, samples per worker and step, presets, and settings by
    symbol.
    """

    workers: int = 8
    batch: int = 32
    network: str = "10GbE"
    device: str = "A100"
    settings: Mapping[str, float] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        """The number of samples in a step. It is the same for every method, even where workers share them."""
        return self.workers * self.batch


def surveyed_algorithms() -> set[str]:
    """Return the names of the algorithms that appear in the sources."""
    return {one.method for source in sources() for one in source.methods if one.method}


CLUSTER = Cluster()


def table(model: Model, cluster: Cluster = CLUSTER) -> list[Row]:
    """Return a row for each algorithm: cost formulas, their values in FLOPs, bytes and updates, and where it is shown.

    `memory` is that of the worker that holds most, `server` that of the server that holds most, or "". Values are for a
    step of all workers with `cluster.samples` samples in total, however divided. Without a formula, the value is None
    and the formula states why there is none; it is None, too, if the model has fewer layers than stages. `computing`
    and `sending` are seconds if all devices run at their peak, and all ports are always busy; `idle` and `late` are
    shares of the time, on a network that takes no time. `settings` are those that the formulas name.
    """
    return [_priced(name, of, model, cluster) for name, of in costs.every().items()]


def _priced(name: str, of: costs.Costs, model: Model, cluster: Cluster) -> Row:
    method = algorithms.find(name)
    workers = 1 if algorithms.family(name) == "sequential" else cluster.workers
    shards = max(1, min(workers, method.data_shards(workers, method.Settings())))
    batch = cluster.samples / shards
    symbols = costs.symbols(name, model.symbols(batch), workers, cluster.settings)
    symbols, of_largest = _with_stages(name, symbols, model, batch)
    row = {
        "method": name,
        "family": algorithms.family(name),
        "workers": workers,
        "surveyed": name in surveyed_algorithms(),
        "waits": of.waits,
        "settings": {symbol: symbols[symbol] for symbol in of.settings() if symbol in symbols},
    }
    for quantity in costs.QUANTITIES:
        scale = ITEM if UNITS[quantity] == "B" else 1
        staged = quantity == "memory" and "S" in of.symbols(quantity)
        number = of.evaluate(quantity, symbols | of_largest if staged else symbols)
        if quantity == "idle" and isinstance(model, UnequalLayers) and "S" in symbols and idle.is_drained(name):
            ranks = int(symbols["S"])
            number = idle.of_stages(name, model.work(ranks * costs.stages_per_rank(name)), ranks, int(symbols["M"]))
        row |= {
            quantity: of.formula_text(quantity),
            f"{quantity} value": None if number is None else number * scale,
        }
    row["computing"] = _over(row["computation value"], workers * parse_device(cluster.device).flops)
    ports = workers + method.servers(method.Settings())
    row["sending"] = _over(row["communication value"], ports * parse_network(cluster.network).between.bandwidth)
    row |= {"approximation": of.approximation, "chapters": chapters_of(name), "figures": figures_of(name)}
    row["run"] = run_of(name, cluster)
    return row


def _with_stages(name: str, symbols: dict[str, float], model: Model, batch: float) -> tuple[dict, dict]:
    """Return the symbols with those of the stages added, and the values for the largest stage (see `cut`).

    If there are more stages than layers, S is missing, and nothing changes.
    """
    try:
        of_stages, of_largest = model.cut(int(symbols["S"]) * costs.stages_per_rank(name), batch)
    except ValueError:
        return {symbol: value for symbol, value in symbols.items() if symbol != "S"}, {}
    return symbols | of_stages, of_largest


UNEQUAL = (
    " Its stages differ, so the idle time of pipelines is simulated, and the memory is an upper bound for any stage."
)


def the_step(model: Model, cluster: Cluster) -> str:
    """Return sentences that describe the step whose costs the table shows; it is the same for every method."""
    stages = "" if isinstance(model, Stack) else UNEQUAL
    return (
        f"A step takes {cluster.samples:,} samples: {cluster.batch} for each of {cluster.workers} workers, or all "
        f"together where workers share samples. The model has {model.parameters:,} parameters: {model.text}.{stages}"
    )


def in_one_cell(value: Any) -> Any:
    """Return the text or number that a table cell shows for a value. Names are separated by spaces, and settings read,
    for example, "H = 20, M = 8".
    """
    if isinstance(value, dict):
        return ", ".join(f"{symbol} = {number:g}" for symbol, number in value.items())
    return " ".join(value) if isinstance(value, tuple) else value


def run_of(name: str, cluster: Cluster) -> str:
    """Return the query of an experiment on digits that shows a method's costs with the cluster's number of workers."""
    settings = {"algorithm": name, "network": cluster.network, "device": cluster.device}
    if algorithms.family(name) != "sequential":
        settings["workers"] = cluster.workers
    return "&".join(f"{key}={value}" for key, value in settings.items())


def format_quantity(value: float | None, unit: str) -> str:
    """Return a number with three digits and its unit, such as "12.5 MB", or a dash for None."""
    return "\N{EN DASH}" if value is None else SAY[unit](value)


def symbols_of(rows: Iterable[Row]) -> dict[str, str]:
    """Return the symbols that these rows' formulas use, with their meanings."""
    formulas = [costs.every()[row["method"]] for row in rows]
    named = {symbol for of in formulas for quantity in costs.QUANTITIES for symbol in of.symbols(quantity)}
    return {symbol: meaning for symbol, meaning in SYMBOLS.items() if symbol in named}


def symbols_line() -> str:
    """Return the symbols of formulas with their meanings, in one line of Markdown."""
    return "; ".join(f"`{symbol}` {meaning}" for symbol, meaning in SYMBOLS.items()) + "."


def _over(value: float | None, rate: float) -> float | None:
    return None if value is None else value / rate
