"""Settings in words, and the differences between two experiments."""

from app.settings.controls import control, owners
from experiments.specification.catalogue import ALGORITHMS, WORKLOADS
from experiments.specification.experiment import Experiment
from experiments.wording import naming, units
from experiments.wording.field_labels import field_label

COUNTED = ("workers", "steps", "epochs")  # settings named after what they count
TOLD = 4  # changes that a line lists


def between(was: Experiment, now: Experiment) -> list[str]:
    """Return, in words, the differences between two experiments, such as "workers 4 → 8" or "worker 3 four times
    slower".
    """
    before, after = flat(was), flat(now)
    switched = []
    if was.algorithm != now.algorithm:
        switched.append(" → ".join(ALGORITHMS[e.algorithm].title for e in (was, now)))
    if was.workload != now.workload:
        switched.append(" → ".join(WORKLOADS[e.workload].title for e in (was, now)))
    differing = [n for n in after if n in before and before[n] != after[n] and n not in ("algorithm", "workload")]
    if not switched:
        return [_change(was, now, n) for n in differing]
    # of its other settings, only those that are not at their defaults, or that both have
    own = [n for n in now.flat() if n in after and n not in ("algorithm", "workload") and after[n] != before.get(n)]
    other = (*own, *(now.data if was.workload != now.workload else ()))
    both = [_change(was, now, n) for n in differing if n not in other]
    return [*switched, *(setting(now, n, after[n]) for n in own), *both]


def summarise(these: list[str]) -> str:
    """Return the changes in one line: the first few, and how many more there are."""
    more = f" and {len(these) - TOLD} more" if len(these) > TOLD else ""
    return f"{', '.join(these[:TOLD])}{more}"


def _change(was: Experiment, now: Experiment, name: str) -> str:
    before, after = flat(was)[name], flat(now)[name]
    if name in naming.NONE:
        return naming.fault(now, name) if after else naming.without(was, name)
    return f"{field_label(name)} {value_of(was, name, before)} → {value_of(now, name, after)}"


def apart(reference: Experiment, shown: Experiment) -> list[str]:
    """Return, in words, the settings of `shown` that differ from those of `reference`, such as "200 steps"."""
    before, after = flat(reference), flat(shown)
    names = [name for name in after if name in before and before[name] != after[name]]
    return [
        _change(reference, shown, name) if name in naming.NONE else setting(shown, name, after[name]) for name in names
    ]


def setting(experiment: Experiment, name: str, value) -> str:
    """Return a setting in a few words, such as "period 16", "8 workers" or "worker 3 four times slower"."""
    if name in naming.NONE:
        return naming.fault(experiment, name)
    if name in COUNTED and value is not None:
        return count(name, value)
    return f"{field_label(name)} {value_of(experiment, name, value)}"


def count(name: str, value: float) -> str:
    """Return a setting of COUNTED with its value, such as "8 workers" or "1 worker"."""
    many = units.count(value) if float(value).is_integer() else units.number(value)
    return f"{many} {name if value != 1 else name.removesuffix('s')}"


def differing(flats: list[dict]) -> list[str]:
    """Return the settings, except the algorithm, that differ among the runs that have them."""
    names = dict.fromkeys(name for flat in flats for name in flat if name != "algorithm")
    return [name for name in names if len({str(flat[name]) for flat in flats if name in flat}) > 1]


def flat(experiment: Experiment, any_seed: bool = False) -> dict:
    """Return the values of the settings in force, by name. With `any_seed`, leave out the seed."""
    return {name: value for name, value in experiment.in_force().items() if not (any_seed and name == "seed")}


def value_of(experiment: Experiment, name: str, value) -> str:
    """Return the value of a setting as the page shows it."""
    if name in naming.NONE:
        marks = [words for kind, words in naming.faults(experiment) if kind == name]
        return " and ".join(marks if len(marks) <= 2 else [f"{len(marks)} ranks"]) or "none"
    if name in ("network", "device") and ":" in value:
        return (naming.network if name == "network" else naming.devices)(value)
    owner = owners(experiment.algorithm, experiment.compression, experiment.workload).get(name)
    return control(owner, name).words(value) if owner else str(value)
