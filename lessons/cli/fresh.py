"""`run --fresh`: print which claims break under seeds that were never used before."""

from collections.abc import Sequence
from itertools import count

from rich.padding import Padding
from rich.table import Table

import lessons
from lessons import fresh
from lessons.cli.console import console


def try_claims(names: Sequence[str], of: range) -> bool:
    """Try the claims of the named chapters and figures with the seeds `of`, and return whether all of them held.

    The default is all chapters. Print each broken claim as it is found, and all of them again at the end. Raise
    ValueError if a name is unknown.
    """
    chosen = [trial for name in names or lessons.CHAPTERS for trial in fresh.trials(name)]
    say(f"Seeds {', '.join(map(str, of))}. To try the same again: --fresh {len(of)} --seed {of[0]}\n")
    broken = []
    for trial in chosen:
        with console.status(trial.name) as status:
            runs = count(1)
            found = trial.breaks(of, lambda name=trial.name, to=status, n=runs: to.update(f"{name}, run {next(n)}"))
        say(
            f"{trial.name}: {len({one.claim for one in found})} of {trial.claims} break"
            if found
            else f"{trial.name}: yes"
        )
        for one in found:
            say(f"  seed {one.seed}: {one.claim}")
            if one.rows:
                console.print(Padding(_table(one.rows), (0, 0, 0, 4), expand=False))
        broken += [f"{trial.name}, seed {one.seed}: {one.claim}" for one in found]
    say(f"\n{sum(trial.claims for trial in chosen)} claims were tried. " + ("These break:" if broken else "All hold."))
    for line in broken:
        say(line)
    return not broken


def say(line: str) -> None:
    console.print(line, highlight=False, markup=False)


def _table(rows: Sequence[dict]) -> Table:
    table = Table(*rows[0], box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    return table
