"""`quiz`: ask a reader to predict, then compare with the simulator."""

import random
import secrets
from pathlib import Path

import click

import lessons
from lessons.cli.console import choices, console, markdown, usage_errors
from lessons.quiz import Item


@click.command(help="Predict, then compare with the simulator. The same --seed gives the same numbers.")
@click.argument("name")
@click.option("--seed", type=click.IntRange(0), help="seed of the numbers in the questions; random by default")
@click.option(
    "--gift",
    type=click.Path(dir_okay=False, path_type=Path),
    help="write the questions for Moodle instead, as GIFT; numbers are accepted within each question's tolerance, "
    f"{100 * Item.within:g} % unless quiz.toml says otherwise, 25 % at most",
)
def quiz(name: str, seed: int | None, gift: Path | None) -> None:
    seed = secrets.randbelow(10**6) if seed is None else seed
    with usage_errors():
        one = lessons.chapter(name)
        if gift:
            from lessons.instructor.gift import gift as written

            gift.write_text(written(one, seed), "utf-8")
            within = [item.within for item in one.items if not item.choices]
            if within:
                said = f"Numbers are accepted within {100 * min(within):g} to {100 * max(within):g} %."
                console.print(said, highlight=False)
            console.print(f"{len(one.items)} questions, with the numbers of --seed {seed}: {gift}", highlight=False)
            return
        if not one.items:
            raise ValueError(f"chapter {name} has no quiz.")
        right = asked = 0
        console.print(f"{len(one.items)} questions; q leaves.\n", style="dim", highlight=False)
        for item in one.items:
            parameters = item.parameters(seed)
            console.print(markdown(item.question(parameters)))
            order = random.Random(seed).sample(item.choices, len(item.choices))
            console.print(choices(choice.says for choice in order))
            letters = "abcdefgh"[: len(order)]
            said = click.prompt(f"? ({item.unit})" if item.unit else "?", value_proc=lambda s, of=letters: _said(s, of))
            if said is None:
                break
            asked += 1
            guess = order[letters.index(said)].key if order else said
            with console.status("simulating"):
                answer = item.compute(name, parameters)
            good = item.right(guess, answer)
            right += good
            console.print("[green]right[/]" if good else "[red]no[/]", highlight=False)
            if item.choices and not good:
                console.print(markdown(item.choice(guess).but))
                console.print(markdown(f"The answer: {item.choice(answer).says}"))
            console.print(markdown(item.explanation(parameters, answer)))
            console.print()
    console.print(f"{right} of {asked} right; --seed {seed} asks the same questions again.", highlight=False)


def _said(text: str, letters: str) -> str | float | None:
    """Return the letter that the reader chose, or a number if there are no letters to choose from. Return None if the
    reader quits.
    """
    text = text.strip().lower()
    if text == "q":
        return None
    if letters:
        if len(text) == 1 and text in letters:
            return text
        raise click.UsageError(f"{text[:20]!r} is not a choice; give a letter from a to {letters[-1]}, or q to leave.")
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{text[:20]!r} is not a number; give one such as 1.5, or q to leave.") from None
