"""A comparison in one line: how the run on the page differs from the previous run, and from the pinned one."""

import streamlit as st

from app.browser.text import escape_markdown, sentence
from app.charts import Shown, axis
from app.comparison import changes, difference, seeds
from app.comparison.difference import learned_alike, only_the_clock
from app.session import session
from experiments.runs import divergence
from experiments.runs.record import Run
from experiments.runs.seeds import pair_by_seed

AGAINST = {"step": "the step", "samples": "samples", "seconds": "time", "bytes": "what was sent"}


def settle_axis(before: Shown | None, run: Run) -> None:
    """Plot the curves against time if only times changed; otherwise go back to plotting them against the step.

    A reader's own choice of the axis is kept.
    """
    apart = before and not axis.is_the_readers() and only_the_clock(before.run, run)
    axis.settle(_pair(before, run) if apart else None)


def since(before: Shown | None, run: Run) -> None:
    """Show everything that changed since the previous run, and its effect; offer to hide it.

    With several seeds, the text says that only one is compared: the previous run has no others.
    """
    if before is None:
        return
    these = changes.between(before.run.experiment, run.experiment)
    changed = f"**{escape_markdown(', '.join(these))}**" if these else "**Once more**"
    several = st.session_state.get("seeds") and run.experiment.cluster == "simulated"
    alone = f"with seed {run.experiment.seed} alone " if several else ""
    pinned = f"pin a run, switch on *{seeds.SEEDS} seeds*, and compare again"
    came = f": {alone}{escape_markdown(difference.between(before.run, run, before.name))}."
    came += _chance(before.run, run, pinned)
    if axis.is_settled_for(_pair(before, run)):
        came += " Plotted against time, because against the step both curves coincide."
    else:
        came += _covered(before.run, run)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="before"):
        st.markdown(f":material/history: {changed}{came}", width="stretch")
        st.button(
            "Forget", icon=":material/close:", key="forget-before", type="tertiary", on_click=session.forget_before,
            help="Remove the previous run from the page.",
        )  # fmt: skip


def in_short(before: Shown | None, run: Run, why: bool = False) -> None:
    """Show in one line, next to the lanes, what changed since the previous run, and its first effect.

    With `why`, a second sentence says why the run diverged, if it did.
    """
    if before is None:
        return
    these = changes.between(before.run.experiment, run.experiment)
    changed = f" (now **{escape_markdown(', '.join(these))}**)" if these else ""
    told = escape_markdown(difference.in_short(before.run, run, before.name))
    reason = f" {sentence(divergence.cause(run.experiment).sentence)}" if why and run.status == "diverged" else ""
    st.markdown(f"Compared with {before.name}{changed}: {told}.{reason}")


def beside(pinned: Shown, now: Shown) -> None:
    """Show in one line how the run on the page differs from the pinned one, and to what effect.

    With several seeds, the effect is a mean.
    """
    heats = pair_by_seed(pinned.runs, now.runs)
    was, has = heats[0] if heats else (pinned.run, now.run)
    these = changes.between(was.experiment, has.experiment)
    changed = f" (now **{escape_markdown(', '.join(these))}**)" if these else ""
    said = difference.over_seeds(heats) if len(heats) > 1 else difference.between(pinned.run, now.run, "the pinned one")
    if len(heats) == 1 and (pinned.others or now.others):  # the table has means over more seeds than this sentence
        said = f"with seed {now.run.experiment.seed} alone {said}"
    st.markdown(
        f":material/keep: Compared with **{escape_markdown(pinned.name)}**, pinned{changed}: {escape_markdown(said)}."
        f"{_chance(was, has, f'switch on *{seeds.SEEDS} seeds*') if len(heats) == 1 else ''}"
        f"{_covered(pinned.run, now.run)}"
    )


def _chance(before: Run, now: Run, simulated: str) -> str:
    """Return a warning that one seed cannot show which loss is better, and what to do about it. Return "" if the losses
    are equal.

    `simulated` is the advice for two runs on the simulated cluster.
    """
    if not difference.may_be_chance(before, now):
        return ""
    on_simulator = {before.experiment.cluster, now.experiment.cluster} == {"simulated"}
    return (
        " One seed cannot tell whether the losses differ by more than chance: "
        f"{simulated if on_simulator else 'run both with other seeds'}."
    )


def _covered(before: Run, now: Run) -> str:
    """Return a sentence if one curve hides the other, "" if both are visible."""
    same = before.summary.get("digest") == now.summary.get("digest")  # already mentioned
    if same or not learned_alike(before, now, axis.now()):
        return ""
    way = "; choose *time* to see both" * (axis.now() != "seconds" and only_the_clock(before, now))
    return f" Plotted against {AGAINST[axis.now()]}, one curve hides the other{way}."


def _pair(before: Shown, run: Run) -> tuple[str, str]:
    return before.run.summary["digest"], run.summary["digest"]
