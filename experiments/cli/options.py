"""Command-line options derived from knobs: one declaration keeps --help, validation and the workbench consistent."""

import inspect
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal, get_args, get_origin

import click

import algorithms
import workloads
from experiments.cli.console import prose
from experiments.runs import store
from experiments.specification.catalogue import CHOICES, COMPRESSIONS
from experiments.specification.experiment import (
    NESTED,
    Experiment,
    coding_settings,
    default_rate,
    default_workload,
    format_value,
    starting_point,
)
from experiments.specification.faults import FaultSetting
from experiments.study.points import Span, parse
from knobs import Knobs, allowed_values, condition, meaning_of_none

runs_option = click.option(
    "--runs",
    default=lambda: str(store.home()),
    metavar="FOLDER",
    help="folder of stored runs [default: $LOCKSTEP_RUNS, or runs next to the source]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="print the summary as JSON")
from_option = click.option("--from", "start", metavar="LINK|FILE|RUN", help="start from this experiment")

KNOB = "knob "
FLAGS = ("--json", "--quiet", "--submit", "--help")


class FiniteRange(click.FloatRange):
    """A click type for finite numbers within bounds. NaN, which click itself accepts, and infinity are refused in the
    same way as text that is not a number.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        return number


class SectionOption(click.Option):
    """An option that the help lists in the section called `section`."""

    section: str


class KnobOption(SectionOption):
    """The command-line option of a knob, such as `--n-push` for the knob `n_push` of `kind`. Values stay text until the
    knobs validate them.

    `begins` is the default, if it differs from the knob's own. The click parameter is called "knob n_push", so that a
    knob may have the same name as another option.
    """

    def __init__(self, kind: type[Knobs], name: str, section: str, many: bool = False, begins: Any = None):
        self.kind, self.knob, self.section = kind, name, section
        self.begins = kind.model_fields[name].default if begins is None else begins
        is_flag = kind.model_fields[name].annotation is bool
        bare: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if is_flag else {}
        super().__init__([f"--{name.replace('_', '-')}"], multiple=many, metavar=_metavar(kind, name), **bare)
        self.name = KNOB + name

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        field = self.kind.model_fields[self.knob]
        choices = ", ".join(CHOICES[self.knob]) if self.knob in CHOICES else allowed_values(self.kind, self.knob)
        description = str(field.description)
        listed = all(word in description for word in choices.replace(" or ", ", ").split(", "))
        facts = [] if choices == "text" or listed else [choices + (", or best" if self.knob == "learning_rate" else "")]
        if self.begins not in (None, ""):
            facts.append(f"default {format_value(self.begins)}")
        elif self.begins is None:
            facts.append(f"default {meaning_of_none(self.kind, self.knob)}")
        if read := condition(self.kind, self.knob, lambda name: f"--{name.replace('_', '-')}"):
            facts.append(read)
        help_text = description + (f" [{'; '.join(facts)}]" if facts else "")
        return f"{self.opts[0]} {self.metavar}", help_text


class SectionedCommand(click.Command):
    """A command whose help lists options by section, and options without a section last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for title in sorted(sections, key=lambda title: title == "Options"):
            with formatter.section(title):
                formatter.write_dl(sections[title])


class ExperimentCommand(SectionedCommand):
    """A command that takes an algorithm and every option of its experiment.

    The options depend on algorithm, compression and workload, so they are built once the arguments are known.
    """

    def __init__(self, *args: Any, many: bool = False, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.many, self.fixed = many, list(self.params)
        self.algorithm: ModuleType = algorithms.module(Experiment().algorithm)
        self.is_chosen = False  # True if the arguments name an algorithm

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _refuse_blanks(args)
        start = _peek(args, "--from")
        base = read(start, _peek(args, "--runs") or store.home()) if start else Experiment()
        chosen = _positional(args)
        name = chosen or base.algorithm
        module = algorithms.module(name.split(",")[0])
        begins = base.workload if start else default_workload(module.__name__.rsplit(".", 1)[-1])
        workload = workloads.find((_peek(args, "--workload") or begins).split(",")[0])
        compression = (_peek(args, "--compression") or base.compression).split(",")
        self.algorithm, self.is_chosen = module, bool(chosen or start)
        defaults = _default_rate(args, base, name, workload)
        self.params = [*self.fixed, *knob_options(module, compression, workload, self.many, defaults)]
        short = module.__name__.rsplit(".", 1)[-1]
        ctx.allow_extra_args = True  # _refuse_extra explains them
        try:
            super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if owners := _owners(error.option_name.lstrip("-").replace("-", "_")):
                raise ValueError(f"{error.option_name} is a setting of {owners}, not of {short}; remove it.") from None
            raise
        if ctx.args:
            self._refuse_extra(ctx, name, ctx.args)
        return ctx.args

    def _refuse_extra(self, ctx: click.Context, name: str, extra: Sequence[str]) -> None:
        """Raise a usage error about the `extra` arguments that follow the name.

        If all of them are algorithms, the error says how to give several; otherwise it only lists them as unexpected.
        """
        if not {*extra} <= {*algorithms.names()}:
            ctx.fail(f"Got unexpected extra argument{'s' * (len(extra) > 1)}: {' '.join(extra)}.")
        several = ",".join([name, *extra])
        if self.many:
            ctx.fail(f"Several algorithms are separated by commas, without spaces: write {several}.")
        ctx.fail(f"{self.name} takes one algorithm, but {several} were given; sweep {several} runs them all.")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does and, if the arguments name an algorithm, the theory of that algorithm."""
        super().format_help_text(ctx, formatter)
        formatter.write_paragraph()
        if self.is_chosen:
            formatter.write(f"{prose(inspect.cleandoc(self.algorithm.__doc__ or ''))}\n")
            return
        default = self.algorithm.__name__.rsplit(".", 1)[-1]
        with formatter.indentation():
            formatter.write_text(
                f"Without a NAME, the algorithm is {default}. {ctx.command_path} NAME --help explains another one and "
                "lists its settings; lockstep list has the names."
            )


class WorkloadCommand(SectionedCommand):
    """A command that takes a workload, the workload's settings, and the settings of an experiment that `knobs` lists.

    The workload's settings default to those of `algorithm`.
    """

    def __init__(self, *args: Any, algorithm: str, knobs: Sequence[str] = (), **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.fixed, self.knobs, self.algorithm = list(self.params), knobs, algorithm

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        name = _positional(args) or Experiment().workload
        settings, begins = workloads.find(name).Settings, starting_point(self.algorithm, name)
        self.params = [
            *self.fixed,
            *(
                KnobOption(settings, field, f"Workload {name}", begins=begins.get(field))
                for field in settings.model_fields
            ),
            *(KnobOption(Experiment, field, "Experiment") for field in self.knobs),
        ]
        return super().parse_args(ctx, args)


def _refuse_blanks(args: Sequence[str]) -> None:
    """Raise ValueError if there is a space after a comma between values, as in `--workers 1, 2`."""
    for before, word in pairwise(args):
        if before.endswith(",") and not word.startswith("-"):
            raise ValueError(f"{before} {word} contains a space; separate values with commas only: {before}{word}.")


def _owners(knob: str) -> str:
    """Return a phrase that says which modules have a setting of this name and how to choose them, or "" if none has."""
    kinds = (
        ("", {name: algorithms.find(name).Settings for name in algorithms.names()}),
        (" (--compression)", {name: coding_settings(name) for name in COMPRESSIONS}),
        (" (--workload)", {name: workloads.find(name).Settings for name in workloads.WORKLOADS}),
    )
    having = [(chosen, [name for name, kind in some.items() if knob in kind.model_fields]) for chosen, some in kinds]
    return " and of ".join(f"{', '.join(some)}{chosen}" for chosen, some in having if some)


def _default_rate(args: Sequence[str], base: Experiment, algorithm: str, workload: ModuleType) -> dict[str, float]:
    """Return the default learning rate for the first model and the first number of workers in the raw arguments."""
    short, where = algorithm.split(",")[0].rpartition(".")[2], workload.__name__.rpartition(".")[2]
    data = dict(base.data) if base.workload == where else {}
    if model := _peek(args, "--model"):
        data["model"] = model
    if "--regression" in args:
        data["regression"] = _peek(args, "--regression") != "false"
    workers = (_peek(args, "--workers") or "").split(",")[0]
    return default_rate(short, where, data, int(workers) if workers.isdecimal() else base.workers)


def knob_options(
    module,
    compressions: Sequence[str],
    workload,
    many: bool = False,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> list[KnobOption]:
    """Return an option for each setting of the algorithm, the compressions, the workload and the experiment.

    `defaults` replace the declared ones.
    """
    name, data = (m.__name__.rsplit(".", 1)[-1] for m in (module, workload))
    starts = {Experiment: module.ALGORITHM.defaults, workload.Settings: starting_point(name, data)}
    sections = [(f"Algorithm {name}", module.ALGORITHM.Settings)]
    sections += [(f"Compression {one}", coding_settings(one)) for one in compressions]
    sections += [(f"Workload {data}", workload.Settings), ("Experiment", Experiment)]
    options: dict[str, KnobOption] = {}
    for section, kind in sections:
        for field in kind.model_fields:
            if field not in (*NESTED, "algorithm", *options):
                begins = starts.get(kind, defaults).get(field)
                options[field] = KnobOption(kind, field, section, many, begins)
    return list(options.values())


def read(text: str, root: str | Path) -> Experiment:
    """Return the experiment that `text` names: a link, a JSON file, or a run. Raise ValueError if it names no
    experiment.
    """
    path = Path(text)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # a link may be longer than a path can be
        is_file = False
    if is_file and path.name != "run.json":
        try:
            return Experiment.from_json(path.read_text(encoding="utf-8"), idle=False)
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    if not is_file and any(mark in text for mark in "?=&"):
        return Experiment.from_query(text)
    return store.experiment(path.parent if is_file else store.find(text, root))


def values(given: dict[str, Any]) -> dict[str, Any]:
    """Return those knobs in `given` that have a value, without the prefix KNOB of their names."""
    knobs = {name.removeprefix(KNOB): value for name, value in given.items() if name.startswith(KNOB)}
    return {name: value for name, value in knobs.items() if value not in (None, ())}


def axes(
    command: click.Command, given: dict[str, Sequence[str]]
) -> tuple[dict[str, str], dict[str, list[str]], dict[str, Span]]:
    """Return (fixed, swept, spans): options with one value, with several, and with a range of values.

    Several values are repeated or separated by commas, a range is LOW..HIGH. Free text may contain commas, so it is not
    split: `--slow 2:3,5:1.5` is one value.
    """
    kinds = {option.knob: option.kind for option in command.params if isinstance(option, KnobOption)}
    fixed, swept, spans = {}, {}, {}
    for name, texts in values(given).items():
        whole = _has_commas(kinds[name], name)
        parts = [part for text in texts for part in ([text] if whole else text.split(","))]
        found = {} if whole else {part: span for part in parts if (span := parse(part))}
        if found and len(parts) > 1:
            raise ValueError(f"{name} has a range and other values, {', '.join(parts)}; give it one or the other.")
        if found:
            spans[name] = found[parts[0]]
        elif len(parts) == 1:
            fixed[name] = parts[0]
        else:
            swept[name] = parts
    return fixed, swept, spans


def _has_commas(kind: type[Knobs], name: str) -> bool:
    annotation = kind.model_fields[name].annotation
    if name in CHOICES:
        return False
    if isinstance(annotation, type) and issubclass(annotation, str | FaultSetting):
        return True
    return str in get_args(annotation) or get_origin(annotation) in (list, tuple)


def _metavar(kind: type[Knobs], name: str) -> str:
    annotation = kind.model_fields[name].annotation
    kinds = [part for part in get_args(annotation) if part is not type(None)] or [annotation]
    if get_origin(annotation) is Literal:
        return "NAME"
    if get_origin(annotation) in (list, tuple):
        return f"{_NAMES.get(kinds[0], 'TEXT')},..."
    return _NAMES.get(kinds[0], "TEXT")


_NAMES = {int: "INT", float: "FLOAT", bool: "[true|false]"}


def _peek(args: Sequence[str], option: str) -> str | None:
    """Return the last value of `option` in the raw arguments."""
    found = None
    for place, word in enumerate(args):
        if word == option and place + 1 < len(args):
            found = args[place + 1]
        elif word.startswith(option + "="):
            found = word[len(option) + 1 :]
    return found


def _positional(args: Sequence[str]) -> str | None:
    """Return the first raw argument that is neither an option nor an option's value."""
    for place, word in enumerate(args):
        if word.startswith("-"):
            continue
        before = args[place - 1] if place else ""
        if not before.startswith("--") or "=" in before or before in FLAGS:
            return word
    return None
