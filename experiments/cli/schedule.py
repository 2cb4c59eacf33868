"""`schedule`: draw a pipeline schedule, measure it, compare several, or time one of your own.

lockstep schedule zb_h1 --ranks 4 --chunks 8 --latency 0.1
lockstep schedule zb_h1 --lists > mine.txt
lockstep schedule gpipe 1f1b --file mine.txt
"""

import difflib
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import click

from algorithms.parts.pipeline.ops import KINDS
from experiments.cli import console, show
from experiments.cli.options import SectionedCommand, SectionOption
from experiments.study.schedules import OWN, Option, Plan, Study, idea, module, options, read_costs, study
from experiments.viewer.palette import OPS
from experiments.wording import units
from knobs import match_name
from theory.schedules import SCHEDULES

FIGURES = (
    ("makespan", "from the first start to the last end"),
    ("idle", "time that a rank is idle, on average"),
    ("bubble of total", "idle time over total time (GPipe, Chimera)"),
    ("bubble of ideal", "idle time over busy time (Megatron-LM)"),
    ("bubble of span", "idle share of the longest span (zero bubble)"),
    ("throughput", "micro-batches per unit of time"),
    ("in flight", "most micro-batches between F and B or I on a rank"),
    ("held", "most micro-batches with stored activations on a rank"),
    ("copies", "copies of a rank's weights, including old versions"),
    ("versions", "versions of one stage's weights still needed"),
    ("delay", "updates between a gradient's forward and its update"),
)
"""Figures of a study's summary to print (with spaces for underscores), and what they mean."""
COLUMNS = ("busy", "idle", "span", "in_flight", "held", "copies", "versions", "delay")
DRAWN = 80  # columns of a picture if the width is unlimited
PATH = 60  # ops of a critical path that are shown


class ScheduleCommand(SectionedCommand):
    """A command that takes schedules by name, with the options of those schedules."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.fixed = list(self.params)
        self.names: list[str] = []

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = [match_name(word, SCHEDULES) for word in args]
        self.names = [word for word in args if word in SCHEDULES]
        own = {option.name: (option, name) for name in reversed(self.names) for option in options(name).values()}
        self.params = [*self.fixed, *(_option(*which) for which in own.values())]
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.names:
            super().format_help_text(ctx, formatter)
        for name in self.names:
            formatter.write_paragraph()
            formatter.write(f"{console.prose(inspect.cleandoc(module(name).__doc__ or ''))}\n")


def _option(option: Option, name: str) -> SectionOption:
    flag = f"--{option.name.replace('_', '-')}"
    if option.kind is bool:
        made = SectionOption(
            [f"{flag}/--no-{flag[2:]}"], default=None, help=f"default {'on' if option.default else 'off'}"
        )
    elif isinstance(option.kind, tuple):
        made = SectionOption([flag], metavar="NAME", help=f"{' or '.join(option.kind)}; default {option.default}")
    else:
        default = option.default if isinstance(option.default, int) else "none"
        made = SectionOption([flag], type=int, metavar="INT", help=f"default {default}")
    made.help = f"{option.about} [{made.help}]"
    made.section = f"Schedule {name}"
    return made


@click.command("schedule", short_help="Draw and measure a pipeline schedule, or compare several.", cls=ScheduleCommand)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--ranks", type=int, default=4, metavar="INT", help="number of ranks [default 4]")
@click.option("--chunks", type=int, default=8, metavar="INT", help="micro-batches [default 8]")
@click.option(
    "--costs",
    default="",
    metavar="F=1,...",
    help="time of each kind of op on a rank's share of the model [default F=1,I=1,W=1,B=2, R like F, U=0]; also 2F=3 "
    "for a stage, 2F0=3 for one op, F+B=2.5 for two ops done together",
)
@click.option("--latency", type=float, default=0.0, metavar="TIME", help="time of a message between ranks [default 0]")
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="your own schedule: a line of ops per rank, or the CSV that torch.distributed.pipelining writes",
)
@click.option("--lists", is_flag=True, help="print only the ops, as text that --file reads")
@click.option("--reasons", is_flag=True, help="print why each idle slot is idle")
def schedule_command(
    names: Sequence[str], ranks: int, chunks: int, costs: str, files: Sequence[str], lists: bool, reasons: bool, **given
) -> None:
    """Draw a pipeline schedule and measure it, or compare several. Without a name, list all schedules.

    An op is written as stage, kind, micro-batch, for example 2F0. Kinds are F forward, B backward, or its halves I
    (gradient of the inputs) and W (of the weights), R recomputed forward, and U update; 3F6+0B2 are done together. No
    model is needed: you choose how long ops take.
    """
    if not names and not files:
        click.echo(catalogue(), nl=False)
        return
    for name in names:
        if name not in SCHEDULES:
            raise ValueError(f"there is no schedule {name[:60]!r}; {_instead(name)}")
    common = {"latency": given.pop("latency"), **_costs(costs)}
    settings = {name: value for name, value in given.items() if value is not None}
    plans = {name: Plan.of(schedule=name, ranks=ranks, chunks=chunks, options=settings, **common) for name in names}
    plans |= {path: Plan.of(schedule=OWN, own=_ops(path), **common) for path in files}
    studies = {name: _studied(name, plan) for name, plan in plans.items()}
    _check_used(costs, [*studies.values()])
    if len(studies) > 1:
        if lists or reasons:
            raise ValueError(
                f"--lists and --reasons print a single schedule, but {len(studies)} were given; name one of them."
            )
        click.echo(comparison(studies))
        return
    ((name, done),) = studies.items()
    if lists:
        click.echo(done.text())
        return
    _print(name, done, reasons)


def _instead(name: str) -> str:
    """Return a hint for an unknown schedule `name`: what to write instead."""
    if own := [one for one in SCHEDULES if module(one).__name__.endswith(f".{name}")]:
        return f"the schedules of the algorithm {name} are {', '.join(own)}."
    if close := difflib.get_close_matches(name, SCHEDULES, n=1):
        return f"did you mean {close[0]}?"
    return f"choose one of {', '.join(SCHEDULES)}, or give your own with --file."


def catalogue() -> str:
    """Return a list of all schedules, each with the idea behind it."""
    formatter = click.HelpFormatter()
    formatter.write_dl([(name, idea(name)) for name in SCHEDULES])
    formatter.write_paragraph()
    formatter.write_text("schedule NAME draws and measures one; several names are compared; see --help for more.")
    return formatter.getvalue()


def comparison(studies: dict[str, Study]) -> str:
    """Return the figures of several schedules, one column per schedule; columns that do not fit continue below."""
    lines = [[label, *(_figure(label, done) for done in studies.values())] for label, _ in FIGURES]
    return show.below([["", *studies], *lines], words=1, keys=1, wide=console.width())


def figures(done: Study) -> str:
    """Return the figures of one schedule, one per line, with their meanings."""
    return "\n".join(f"  {label:<15}  {_figure(label, done):<8} {meaning}" for label, meaning in FIGURES)


def ranks(done: Study) -> str:
    """Return a table of what was measured on each rank, one line per rank."""
    rows = zip(*(done.ranks[column].tolist() for column in COLUMNS), strict=True)
    return show.table(
        [
            {"rank": rank} | {c: None if c == "delay" and v < 0 else v for c, v in zip(COLUMNS, row, strict=True)}
            for rank, row in enumerate(rows)
        ]
    )


def critical_path(done: Study) -> str:
    """Return lines with the ops of the critical path, which add up to the makespan."""
    rows = (done.ops["critical"] & (done.ops["end"] > done.ops["start"])).nonzero()[0]
    names = [done.op(row) for row in rows[done.ops["start"][rows].argsort(kind="stable")]]
    more = len(names) - PATH
    shown = names if more <= 0 else [*names[: PATH // 2], f"... {more} more ...", *names[-PATH // 2 :]]
    links = done.summary["path_links"]
    text = f"critical path: {len(names)} ops, {links} message{'s' * (links != 1)} between ranks: {' '.join(shown)}"
    return "\n".join(console.wrap(line, "  ") for line in (text, *_notation(names)))


def _notation(names: Sequence[str]) -> Iterator[str]:
    """Yield a line that explains the notation of these ops, unless there are no ops."""
    kinds = [f"{kind} {meaning}" for kind, (meaning, _) in OPS.items() if any(kind in name for name in names)]
    if kinds:
        yield f"notation: stage, kind, micro-batch, as in {names[0]}: {', '.join(kinds)}"


def reasons_of(done: Study) -> Iterator[str]:
    """Yield a line for each idle slot that says why it is idle."""
    slots = zip(*(done.idle[column].tolist() for column in ("rank", "start", "end")), strict=True)
    for row, (rank, start, end) in enumerate(slots):
        if end - start > 1e-9 * done.summary["makespan"]:  # more than rounding
            yield f"rank {rank:<3} {f'{show.number(start)} to {show.number(end)}':<16} {done.why(row)}"


def _print(name: str, done: Study, reasons: bool) -> None:
    from experiments.exports.gantt import chart

    s = done.summary
    title = f"{name}: {s['ranks']} ranks, {done.chunks} micro-batches, {_priced(done)}"
    console.say((console.prose(title), console.HEAD))
    console.say()
    console.rich_console().print(chart(done, min(console.width(), DRAWN)))
    console.say(f"\n{figures(done)}\n\n{ranks(done)}\n\n{critical_path(done)}")
    if reasons:
        console.say("\n" + console.prose("\n".join(reasons_of(done))))


def _priced(done: Study) -> str:
    plan, s = done.plan, done.summary
    costs = f"F {plan.forward:g}, I {plan.inputs:g}, W {plan.weights:g}, B {plan.inputs + plan.weights:g}"
    others = f", {plan.costs}" if plan.costs else ""
    latency = f", latency {plan.latency:g}" if plan.latency else ""
    share = s["ranks"] / s["stages"]
    thin = "" if share == 1 else f"\n{s['stages']} stages: an op on one stage costs {show.number(share)} times as much"
    return f"{costs}{others}{latency}{thin}"


def _studied(name: str, plan: Plan) -> Study:
    try:
        return study(plan)
    except ValueError as error:
        raise ValueError(f"{name}: {error}" if plan.schedule == OWN else str(error)) from None


def _figure(label: str, done: Study) -> str:
    value = done.summary[label.replace(" ", "_")]
    if label.startswith("bubble"):
        return units.percent(value)
    return "–" if label == "delay" and value < 0 else show.number(value)


def _costs(text: str) -> dict[str, Any]:
    """Parse the costs of ops into the fields of a plan. B is the sum of I and W, so any one of the three follows from
    the others.
    """
    words = text.replace(",", " ").split()
    given = {word[0]: read_costs(word)[word[0]] for word in words if word[:2] in ("F=", "I=", "W=", "B=")}
    if "B" in given:
        whole = given["B"]
        inputs = given.get("I", whole - given["W"] if "W" in given else whole / 2)
        weights = given.get("W", whole - inputs)
        if min(inputs, weights) < 0 or abs(inputs + weights - whole) > 1e-9 * whole:
            raise ValueError(
                f"B={whole:g} is a whole backward, but its halves I={inputs:g} and W={weights:g} do not add up to "
                "it; remove B."
            )
        given |= {"I": inputs, "W": weights}
    others = " ".join(word for word in words if word[:2] not in ("F=", "I=", "W=", "B="))
    names = {"F": "forward", "I": "inputs", "W": "weights"}
    return {"costs": others, **{names[kind]: cost for kind, cost in given.items() if kind in names}}


def _check_used(costs: str, studies: Sequence[Study]) -> None:
    """Raise ValueError for a cost that applies to no op of the studies, since it would silently have no effect."""
    ops = [op for done in studies for op in _ops_of(done)]
    used = {key for op in ops for key in (op[0], op[:2], op)} | {"F", "I", "W", "B", "U"}  # I and W make up a B
    used |= {"+".join(kinds) for done in studies for kinds in _joined(done)}
    for word in costs.replace(",", " ").split():
        if read_costs(word).keys() - used:
            stages, chunks = (max(op[n] for op in ops) for n in (1, 2))
            kinds = [kind for kind in KINDS if any(op[0] == kind for op in ops)]
            raise ValueError(
                f"{word} has no effect: the schedule has no op {word.partition('=')[0]}. It has stages 0 to "
                f"{stages}, micro-batches 0 to {chunks} and the kinds {', '.join(kinds)}."
            )


def _ops_of(done: Study) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, stage, micro-batch) of each op of a study."""
    for kind, *place in zip(*(done.ops[name].tolist() for name in ("kind", "stage", "chunk")), strict=True):
        yield KINDS[kind], *place


def _joined(done: Study) -> Iterator[list[str]]:
    """Yield, in order, the kinds of each group of ops that are done together. An op that is done alone is a group of
    its own.
    """
    kinds = []
    for (kind, *_), joined in zip(_ops_of(done), done.ops["joined"].tolist(), strict=True):
        kinds.append(kind)
        if not joined:
            yield kinds
            kinds = []


def _ops(path: str) -> str:
    """Return the text of a schedule in a file, without empty lines and comments (lines that begin with #)."""
    try:
        with click.open_file(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ValueError(
            f"{path} is not a text file; give a text file with a line for each rank, for example 0F0 0B0 0U0."
        ) from None
    return "\n".join(line for line in lines if line.strip(" \t,") and not line.lstrip().startswith("#"))
