"""An experiment: everything that determines a run, and nothing else.

It is frozen and validated, and has three equivalent forms: JSON, a URL query, and a command line. On the simulated
cluster, the same experiment gives the same run: bit for bit with the same matrix kernels, up to rounding with others.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin
from urllib.parse import parse_qsl, urlencode

import numpy as np
from pydantic import ValidationInfo, field_validator, model_validator

import algorithms
import algorithms.compression as compressions
import workloads
from algorithms import rates
from algorithms.algorithm import Algorithm, nothing_sent
from cluster.devices import parse_device
from cluster.faults import LONGEST
from cluster.network import parse_network
from experiments.specification import this_machine
from experiments.specification.catalogue import PRESETS
from experiments.specification.faults import Crash, Pause, Slow
from knobs import Knobs, condition, in_force, knob, local, make, match_name
from workloads.budget import Budget
from workloads.loss_scale import WINDOW
from workloads.mixed_precision import FORMATS

MAX_WORKERS = 4096
NAMED = 8  # most settings listed in an error
MOST_SEED = 2**31 - 1
MAX_QUERY = 8000  # characters; longer queries are rejected without parsing
LARGE = 1e6  # numbers from here on are written with an exponent, if that keeps all digits
PAGE = (
    *("tour", "run", "axis", "log", "pin", "source", "seeds", "sweep", "sweep2", "best", "stops", "strong", "race"),
    *("goal", "colour", "size", "view", "why", "zoom", "critical", "welcome", "from", "at_once"),
    *("embed", "embed_options", "keep"),
)
"""URL parameters that only the page uses; `keep` is the name of `pin` in older links."""
PARSERS = {"network": parse_network, "device": parse_device}
OWN = "own"  # the network and device of a real cluster itself: nothing is emulated
REAL_DEFAULTS = {"network": OWN, "device": OWN}
NESTED = ("settings", "coding", "data")  # fields whose values have names of their own
SQUARED_ERROR = 0.25  # share of an algorithm's rate: the curvature has no bound, unlike that of cross-entropy
LINKS = "network", "latency", "bandwidth", "per_node", "nics"
"""Settings of the network."""
FP16 = {"precision": ("fp16",)}
"""When the settings of loss scaling apply."""
AGREE_IN_EVERY_STEP = (
    "Workers agree in every step whether a budget in seconds or a target loss is reached, so they wait for the slowest "
    "in every step, not once per period; give a number of steps to compare times."
)
OTHER_BUDGETS = ("epochs", "seconds", "target_loss")


class Experiment(Knobs):
    """What to train, how, where and for how long. All fields except those in NESTED are plain values."""

    algorithm: str = knob("sync_sgd", "training algorithm: how the workers train together")
    settings: dict[str, Any] = knob({}, "the algorithm's own settings")
    compression: str = knob("none", "how gradients are compressed before sending; none sends them as they are")
    coding: dict[str, Any] = knob({}, "the compression's own settings")
    workload: str = knob("digits", "data set and model to train")
    data: dict[str, Any] = knob({}, "the workload's own settings")
    batch: int = knob(
        32,
        "samples per worker in each step; samples at the end of an epoch that do not fill a step are dropped",
        ge=1,
        le=65536,
        unit="samples",
    )

    cluster: Literal["simulated", "processes", "threads", "gpus"] = knob(
        "simulated", "where the ranks run: simulated, processes, threads or gpus"
    )
    workers: int = knob(4, "ranks that train; servers are extra", ge=1, le=MAX_WORKERS)
    network: str = knob(
        "10GbE",
        "network between nodes: a preset, or latency:bandwidth:overhead; here: as measured on "
        "this machine; own: real ranks emulate none",
    )
    latency: float | None = knob(
        None,
        "one-way network latency in seconds, overriding the preset",
        none="preset",
        ge=0,
        le=10,
        unit="s",
        postpones=True,
    )
    bandwidth: float | None = knob(
        None,
        "bytes per second through a node's network port, overriding the preset",
        none="preset",
        gt=0,
        le=1e13,
        unit="bytes/s",
    )
    device: str = knob(
        "laptop",
        "hardware each rank computes on: a preset, or FLOP/s:bytes/s:overhead; here: as measured "
        "on this machine; own: real ranks emulate none",
    )
    rank_memory: float | None = knob(
        None, "memory per rank in bytes; a run that needs more is refused", none="no limit", gt=0, le=1e15, unit="bytes"
    )
    per_node: int = knob(1, "ranks per node; they share its network interfaces", ge=1, le=64)
    nics: int | None = knob(
        None,
        "network interfaces per node, overriding the preset; each rank uses the one nearest to it",
        none="preset",
        ge=1,
        le=64,
    )
    collective: Literal[
        "fast", "stream", "ring", "recursive_doubling", "halving_doubling", "tree", "double_tree", "hierarchical"
    ] = knob(
        "fast",
        "all-reduce algorithm; fast: a ring, or on real ranks the quickest available; stream: a "
        "ring, but one all-reduce at a time, as on one CUDA stream",
    )
    jitter: str = knob("none", "random variation of compute times from step to step, by preset")
    slow: Slow = knob(
        "",
        "slow ranks as rank:factor, servers first; below 1 is faster, for real ranks only on an emulated device",
        example="2:3,5:1.5",
    )
    pause: Pause = knob("", "ranks that stop for a while, as rank:from-to in seconds", example="1:0.5-0.8")
    crash: Crash = knob(
        "", "ranks that crash, as rank:second, or as rank:from-to to restart", example="3:0.4,2:0.1-0.2"
    )

    steps: int | None = knob(
        200,
        "stop after this many mini-batches per worker; no limit if another budget is given",
        none="no limit",
        ge=1,
        le=10_000_000,
        unit="steps",
    )
    epochs: float | None = knob(
        None,
        "stop after this many passes over the training data, by all workers together",
        none="no limit",
        gt=0,
        le=10_000,
        unit="epochs",
    )
    seconds: float | None = knob(
        None, "stop at this time, in seconds on the run's own clock", none="no limit", gt=0, le=LONGEST, unit="s"
    )
    target_loss: float | None = knob(
        None, "stop when the mean of the last 20 mini-batch losses is this low", none="no limit", gt=0, le=1e6
    )

    evaluations: int = knob(40, "times the model is evaluated, spread over the run", ge=1, le=10_000)
    precision: Literal["float32", "float64", "bf16", "fp16"] = knob(
        "float32",
        "floating-point precision: float32 (7 digits), float64 (16 digits), or mixed: layers compute in bf16 or fp16",
    )
    loss_scale: int | None = knob(
        None,
        "factor by which fp16 multiplies the gradient of the loss, so that small gradients do not vanish",
        none="dynamic",
        when=FP16,
        ge=1,
        le=2**60,
    )
    scale_window: int = knob(
        WINDOW,
        "steps without an overflow after which a dynamic loss scale is doubled",
        when={**FP16, "loss_scale": (None,)},
        ge=1,
        le=1_000_000,
        unit="steps",
    )
    weight_storage: Literal["float32", "nearest", "stochastic"] = knob(
        "float32",
        "how weights are kept in mixed precision: in float32, or in 16 bits, rounded to nearest or stochastically "
        "after each update",
        when={"precision": tuple(FORMATS)},
    )
    recompute_activations: Literal["none", "selective", "full"] = knob(
        "none",
        "activations to recompute in the backward pass instead of storing them: none; attention weights (selective); "
        "or all but the inputs of a few layers (full)",
    )
    sync_batch_norm: bool = knob(False, "compute batch-norm statistics over the samples of all workers in a step")
    cuda_graph: bool = knob(
        False,
        "replay the kernels of a gradient on a GPU from a CUDA graph, as one launch; results are the same to the bit",
        when={"cluster": ("gpus",)},
    )
    seed: int = knob(0, "seed for everything random: initial weights, shuffling and jitter", ge=0, le=MOST_SEED)

    @model_validator(mode="before")
    @classmethod
    def _begun(cls, values: Any) -> Any:
        """Return the values, with the defaults of the algorithm and of a real cluster where these differ from the
        general ones. Experiments of older versions, where recompute_activations was a switch, are converted.
        """
        if not isinstance(values, dict):
            return values
        named = {
            kind: match_name(name, table)
            for kind, table in PRESETS.items()
            if isinstance(name := values.get(kind), str)
        }
        if (switch := str(values.get("recompute_activations")).lower()) in ("true", "false"):
            named["recompute_activations"] = "full" if switch == "true" else "none"
        return {**own_defaults(values.get("algorithm")), **real_defaults(values.get("cluster")), **values, **named}

    @field_validator("device", "network")
    @classmethod
    def _here(cls, text: str, info: ValidationInfo) -> str:
        """Return the setting, with "here" replaced by this machine's numbers, so that the experiment means the same
        elsewhere.
        """
        return this_machine.resolve_here(str(info.field_name), text)

    @model_validator(mode="after")
    def _known(self) -> Experiment:
        if self.algorithm not in algorithms.names():
            algorithms.find(self.algorithm)  # raises an error with a hint, unless it is a full name
            raise ValueError(f"algorithm is {self.algorithm!r}; use its short name {self.algorithm.split('.')[-1]!r}.")
        for kind, table in PRESETS.items():
            name = getattr(self, kind)
            if name == OWN and kind != "jitter":
                if self.cluster == "simulated":
                    raise ValueError(
                        f"{kind}: 'own' exists only on a real cluster; choose {', '.join(table)}, or 'here' after "
                        "measuring this machine with lockstep fit."
                    )
                continue
            if kind in PARSERS:
                PARSERS[kind](name)
            elif name not in table:
                raise ValueError(f"there is no {kind} preset {name[:60]!r}; {_among(name, list(table))}")
        begun = starting_point(self.algorithm, self.workload)
        given = {**begun, **self.data}
        data = make(workloads.find(self.workload).Settings, given, self.workload, begun)
        rate = default_rate(self.algorithm, self.workload, given, self.workers)
        s = make(algorithms.find(self.algorithm).Settings, {**rate, **self.settings}, self.algorithm, rate)
        coding = make(coding_settings(self.compression), self.coding, self.compression)
        how = self.method.compresses
        if self.compression != "none" and not how:
            able = [name for name in algorithms.names() if algorithms.find(name).compresses]
            sends = self.method.elements_sent is not nothing_sent
            lacks = "cannot compress what it sends" if sends else "sends nothing to compress"
            raise ValueError(f"compression: {self.algorithm} {lacks}; use none, or {', '.join(able)}.")
        if how == "push" and self.compression != "none" and not compressions.find(self.compression).pushable:
            raise ValueError(
                f"{self.compression} needs all ranks to exchange gradients at the same time, but in {self.algorithm} "
                "each worker pushes on its own; use another compression, such as top_k."
            )
        for name in self._idle():
            object.__setattr__(self, name, type(self).model_fields[name].default)
        object.__setattr__(self, "coding", _effective(coding))
        object.__setattr__(self, "settings", _effective(s))
        object.__setattr__(self, "data", _effective(data, begun))
        if self.method.whole_batch:
            object.__setattr__(
                self, "batch", self.method.defaults.get("batch", type(self).model_fields["batch"].default)
            )
        for setting in (self.slow, self.pause, self.crash):
            setting.check(self.ranks)
        if not self.budget.model_dump(exclude_none=True):
            raise ValueError("no budget: give at least one of steps, epochs, seconds or target_loss.")
        return self

    @property
    def method(self) -> Algorithm:
        """The algorithm's declaration."""
        return algorithms.find(self.algorithm)

    @property
    def knobs(self) -> Knobs:
        """The algorithm's settings, as an instance of its Settings."""
        return self.method.Settings(**self.settings)

    @property
    def dtype(self) -> np.dtype:
        """The type of the weights and of all that is sent: float32 in mixed precision, too."""
        return np.dtype("float64" if self.precision == "float64" else "float32")

    @property
    def eps(self) -> float:
        """The distance from 1 to the next larger number in the format in which layers compute."""
        if self.precision in FORMATS:
            return 2.0 ** (1 - FORMATS[self.precision][0])
        return float(np.finfo(self.dtype).eps)

    @property
    def is_repeatable(self) -> bool:
        """True if the same experiment gives the same run, bit for bit."""
        return self.cluster == "simulated"

    @property
    def servers(self) -> int:
        """The number of ranks that hold parameters but do not train; they come first."""
        return self.method.servers(self.knobs)

    @property
    def ranks(self) -> int:
        """The number of all ranks, servers and workers."""
        return self.servers + self.workers

    @property
    def restartable(self) -> bool:
        """True if a lost worker may restart with only the newest reported model."""
        return self.method.may_restart(self.knobs)

    @property
    def notes(self) -> tuple[str, ...]:
        """The algorithm's remarks on this experiment, as sentences, known before it runs."""
        line = rates.find_rate(self.algorithm, self.workload, self.data.get("model", ""))
        searched = self.method.defaults.get("steps", rates.STEPS)
        short = self.workload not in rates.STAND_INS and (self.steps or math.inf) <= searched
        agree = [AGREE_IN_EVERY_STEP] if self.agrees_between_meetings else []
        return (*self.method.notes(self), *agree, *(line.notes(self.workers) if line and short else []))

    @property
    def agrees_between_meetings(self) -> bool:
        """True if workers that exchange models only once per period have to agree in every step on whether the budget
        is spent.
        """
        in_periods = algorithms.family(self.algorithm) in ("averaging", "decentralized")
        rarely = in_periods and self.workers > 1 and getattr(self.knobs, "period", 1) > 1
        return rarely and self.budget.open_ended and self.method.is_deterministic(self.knobs)

    @property
    def files(self) -> list[str]:
        """The names of those settings that refer to files of the machine it runs on, which only that machine's owner
        may use.
        """
        return [name for name in local(workloads.find(self.workload).Settings) if self.data[name]]

    @property
    def numbers(self) -> float:
        """The approximate number of values in the training data, known before the data is loaded (see
        `workloads.workload.DataKnobs`).
        """
        return workloads.find(self.workload).Settings(**self.data).numbers

    @property
    def budget(self) -> Budget:
        return Budget(steps=self.steps, epochs=self.epochs, seconds=self.seconds, target_loss=self.target_loss)

    def in_force(self) -> dict[str, Any]:
        """Return all values in one flat mapping by name, except knobs that have no effect with the other values."""
        values = self.model_dump(mode="json")
        kinds = settings_of(self.algorithm, self.compression, self.workload)
        idle = self._idle()
        own = {name: value for name, value in values.items() if name not in NESTED and name not in idle}
        if self.method.whole_batch:
            del own["batch"]
        groups = zip(kinds, (self.settings, self.coding, self.data), strict=True)
        nested = [(name, value) for kind, some in groups for name, value in some.items() if in_force(kind, name, some)]
        return {**own, **dict(nested)}

    def _idle(self) -> dict[str, Any]:
        """Return those of the experiment's own fields that have no effect with the others, such as a loss scale in
        float32.
        """
        kind = type(self)
        values = {name: getattr(self, name) for name in kind.model_fields}
        return {name: value for name, value in values.items() if not in_force(kind, name, values)}

    def change(self, **values: Any) -> Experiment:
        """Return a copy with other values, given by name as in `flat`; None restores a default.

        With another algorithm or workload, settings that it does not have are dropped, and so are those for which the
        new algorithm has its own defaults.
        """
        kept = self.flat()
        if values.get("algorithm", self.algorithm) != self.algorithm:
            own = own_defaults(values["algorithm"])
            kept = {name: value for name, value in kept.items() if name not in own}
            if "workload" in own or default_workload(self.algorithm) == self.workload:
                values = {"workload": default_workload(values["algorithm"]), **values}
        modules = "algorithm", "compression", "workload"
        if not values.keys().isdisjoint(modules):
            old = {*self.settings, *self.coding, *self.data}
            names = _names(*(values.get(module) or getattr(self, module) for module in modules))
            kept = {name: value for name, value in kept.items() if name not in old or name in names}
        kinds = settings_of(*(values.get(module) or getattr(self, module) for module in modules))
        every = {**self.data, **kept, **values}
        idle = {n for kind in kinds for n in kind.model_fields if n not in values and not in_force(kind, n, every)}
        kept = {name: value for name, value in kept.items() if name not in idle}
        return Experiment.of({name: value for name, value in {**kept, **values}.items() if value is not None})

    # one flat form, from which JSON, query and command line differ only in punctuation

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Experiment:
        """Return the experiment with these values, given by name in one flat mapping ("workers", "period", "noise").
        Raise ValueError if it is invalid.

        Values that have no effect with the others, such as a momentum with plain SGD, are left at their defaults.
        Values may be text, as in links and command lines: an empty one is None where that is allowed.
        """
        own = [name for name in cls.model_fields if name not in NESTED]
        fields = {name: _read(cls, name, values[name]) for name in own if name in values}
        if "steps" not in fields and any(fields.get(name) is not None for name in OTHER_BUDGETS):
            fields["steps"] = None  # another budget replaces the default one
        algorithm = str(fields.get("algorithm", cls.model_fields["algorithm"].default))
        fields["algorithm"] = algorithms.module(algorithm).__name__.rsplit(".", 1)[-1]
        workload = str(fields.setdefault("workload", default_workload(fields["algorithm"])))
        kinds = settings_of(algorithm, str(fields.get("compression", "none")), workload)
        settings, coding, data = (
            {name: _read(kind, name, values[name]) for name in kind.model_fields if name in values} for kind in kinds
        )
        known = [*own, *settings, *coding, *data]
        unknown = [name for name in values if name not in known]
        if unknown:
            choices = [*(name for kind in kinds for name in kind.model_fields), *own]
            hint = _among(unknown[0], choices, NAMED)
            raise ValueError(f"{fields['algorithm']} on {workload} has no setting {unknown[0][:60]!r}; {hint}")
        begins = {**own_defaults(fields["algorithm"]), **real_defaults(fields.get("cluster"))}
        return make(cls, {**fields, "settings": settings, "coding": coding, "data": data}, begins=begins)

    def refuse_idle(self, given: Mapping[str, Any]) -> None:
        """Raise ValueError if one of the values in `given` has no effect, such as a momentum with plain SGD."""
        kinds = type(self), *settings_of(self.algorithm, self.compression, self.workload)
        for kind, held in zip(kinds, (self._idle(), self.settings, self.coding, self.data), strict=True):
            for name in given.keys() & held.keys():
                if not in_force(kind, name, held):
                    read = condition(kind, name)
                    raise ValueError(
                        f"{name} has no effect: it applies only {read}. Remove it, or change that setting."
                    )
        if "batch" in given and self.method.whole_batch:
            raise ValueError(f"batch has no effect: a step of {self.algorithm} uses all samples; remove --batch.")

    def refuse_idle_changes(self, given: Mapping[str, Any]) -> None:
        """Raise ValueError as `refuse_idle` does, but allow values that are the default.

        Used for JSON and links, which may list every setting. A batch is not refused, because recorded links contain
        one.
        """
        held = {**self._idle(), **self.settings, **self.coding, **self.data}
        self.refuse_idle({n: v for n, v in given.items() if n in held and format_value(v) != format_value(held[n])})

    def flat(self) -> dict[str, Any]:
        """Return algorithm, workload, and every value that differs from its default, by name in one flat mapping."""
        own = {name: value for name, value in self.non_defaults().items() if name not in ("algorithm", "workload")}
        if any(name in own for name in OTHER_BUDGETS):
            own["steps"] = self.steps  # included even if it is the default, which another budget would replace
            if self.steps is None:
                del own["steps"]
        rate = default_rate(self.algorithm, self.workload, self.data, self.workers)
        mine = _differing(self.method.Settings, self.settings, rate)
        packed = _differing(coding_settings(self.compression), self.coding)
        start = starting_point(self.algorithm, self.workload)
        theirs = _differing(workloads.find(self.workload).Settings, self.data, start)
        return {"algorithm": self.algorithm, "workload": self.workload, **mine, **packed, **theirs, **own}

    def non_defaults(self) -> dict[str, Any]:
        """Return the experiment's own fields that differ from their defaults, with fault settings as text."""
        values = self.model_dump(exclude={*NESTED})
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        defaults |= {**self.method.defaults, **real_defaults(self.cluster)}
        return {name: value for name, value in values.items() if value != defaults[name]}

    def query(self) -> str:
        """Return the URL query, without the question mark."""
        return urlencode({name: format_value(value) for name, value in self.flat().items()})

    @classmethod
    def from_query(cls, query: str) -> Experiment:
        """Return the experiment of a URL or its query. Raise ValueError if the text is damaged, hostile or from another
        version.

        Parameters of the workbench other than the experiment (PAGE) are ignored.
        """
        query = query.partition("?")[2] or query
        if len(query) > MAX_QUERY:
            raise ValueError(
                f"the link has {len(query)} characters, but a Lockstep link has at most {MAX_QUERY}; copy it again."
            )
        try:
            pairs = parse_qsl(query.partition("#")[0], keep_blank_values=True, strict_parsing=bool(query))
        except ValueError:
            raise ValueError("the link is damaged: it should read name=value&name=value; copy it again.") from None
        given = {name: value for name, value in pairs if name not in PAGE}
        experiment = cls.of(given)
        experiment.refuse_idle_changes(given)
        if experiment.files:
            raise ValueError(
                f"the link gives a {experiment.files[0]}, but links may not name files of the machine that runs "
                f"them; remove {experiment.files[0]}, or give it on the command line."
            )
        return experiment

    def command(self) -> str:
        """Return the command line that repeats the experiment."""
        options = self.flat()
        name, workload = options.pop("algorithm"), options.pop("workload")
        words = ["lockstep", "run", name]
        if workload != default_workload(name):
            words += ["--workload", workload]
        for option, value in options.items():
            words += [f"--{option.replace('_', '-')}", format_value(value)]
        return shlex.join(words)

    def json(self) -> str:  # type: ignore[override]  # replaces pydantic's deprecated method of this name
        """Return the JSON text, with all values."""
        return json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str, idle: bool = True) -> Experiment:
        """Return the experiment of a JSON text. Raise ValueError if it is invalid or, unless `idle`, if a value that is
        not the default has no effect. Stored runs may have such values, since defaults change.
        """
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"this is not valid JSON: {str(error)[:100]}; give the JSON of an experiment.") from None
        if not isinstance(values, dict):
            raise ValueError("this JSON is not an experiment: it should be an object with a field 'algorithm'.")
        experiment = make(cls, values)
        if not idle:
            nested = [some for name in NESTED if isinstance(some := values.get(name), dict)]
            experiment.refuse_idle_changes({name: value for some in (values, *nested) for name, value in some.items()})
        return experiment

    def key(self) -> str:
        """Return 16 hexadecimal digits that identify this experiment: equal experiments have equal keys."""
        return hashlib.sha256(self.json().encode()).hexdigest()[:16]


def starting_point(algorithm: str, workload: str) -> dict[str, Any]:
    """Return the algorithm's own defaults for the workload's settings, such as a deep model for a pipeline."""
    begins = algorithms.find(algorithm).model_defaults
    return {name: value for name, value in begins.items() if name in workloads.find(workload).Settings.model_fields}


def default_rate(algorithm: str, workload: str, data: Mapping[str, Any], workers: int) -> dict[str, float]:
    """Return the default learning rate of the algorithm on the workload, or {} if the default in its Settings applies.

    It depends on the model and the loss in `data`, the workload's settings; missing ones are at their defaults.
    """
    fields, own = workloads.find(workload).Settings.model_fields, algorithms.find(algorithm).Settings.model_fields
    model = ""
    if "model" in fields:
        model = data.get("model") or starting_point(algorithm, workload).get("model", fields["model"].default)
    if found := rates.find_rate(algorithm, workload, model):
        return {"learning_rate": found.default(workers)}
    if "regression" in fields and data.get("regression") and "learning_rate" in own:
        return {"learning_rate": SQUARED_ERROR * own["learning_rate"].default}
    return {}


def own_defaults(algorithm: str | None) -> Mapping[str, Any]:
    """Return the algorithm's own defaults for the experiment's fields, or {} if there is no such algorithm."""
    return algorithms.find(algorithm).defaults if algorithm in algorithms.names() else {}


def default_workload(algorithm: str | None) -> str:
    """Return the workload that the algorithm trains on by default, or the general default if there is no such
    algorithm.
    """
    return own_defaults(algorithm).get("workload", Experiment.model_fields["workload"].default)


def real_defaults(cluster: str | None) -> dict[str, Any]:
    """Return a real cluster's own defaults for the experiment's fields, or {} for the simulated one."""
    return {} if cluster in (None, "simulated") else REAL_DEFAULTS


def settings_of(algorithm: str, compression: str, workload: str) -> tuple[type[Knobs], type[Knobs], type[Knobs]]:
    """Return the settings classes of these three modules. Raise ValueError if one of them does not exist."""
    return algorithms.find(algorithm).Settings, coding_settings(compression), workloads.find(workload).Settings


def coding_settings(compression: str) -> type[Knobs]:
    """Return a compression's settings class, or an empty one for "none"."""
    return Knobs if compression == "none" else compressions.find(compression).Settings


def _effective(made: Knobs, start: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the values of these knobs as in JSON, with a knob at its default if it has no effect."""
    kind, values = type(made), made.model_dump(mode="json")
    defaults = kind(**(start or {})).model_dump(mode="json")
    return {n: value if in_force(kind, n, values) else defaults[n] for n, value in values.items()}


def _differing(kind: type[Knobs], values: Mapping[str, Any], start: Mapping[str, Any] | None = None) -> dict[str, Any]:
    defaults = kind(**(start or {})).model_dump(mode="json")
    return {name: value for name, value in values.items() if value != defaults[name]}


def _names(algorithm: str, compression: str, workload: str) -> set[str]:
    return {name for kind in settings_of(algorithm, compression, workload) for name in kind.model_fields}


def format_value(value: Any) -> str:
    """Return a value as it is written in links and command lines, such as 1e8 for 100000000.0."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(format_value, value))
    if isinstance(value, float) and value >= LARGE and value == float(short := f"{value:g}"):
        return re.sub(r"e\+0?", "e", short)
    return "" if value is None else str(value)


def _read(kind: type[Knobs], name: str, value: Any) -> Any:
    """Return `value` ready for validation: text for a list is split at commas, and "" becomes None if None is
    allowed.
    """
    if not isinstance(value, str):
        return value
    annotation = kind.model_fields[name].annotation
    if value == "" and type(None) in get_args(annotation):
        return None
    return value.split(",") if get_origin(annotation) in (list, tuple) else value


def _among(name: str, choices: list[str], most: int = 100) -> str:
    close = difflib.get_close_matches(name, choices, n=1)
    if close:
        return f"did you mean {close[0]}?"
    more = f" and {len(choices) - most} more" if len(choices) > most else ""
    return f"choose from {', '.join(choices[:most])}{more}."
