"""Show what a script printed, by rank."""

import streamlit as st

from experiments.runs.script_run import ScriptRun
from experiments.wording import units

MOST = 400  # most lines shown: half from the start, half from the end
FEW, HIGHEST = 16, 400  # lines shown in full height, and px of the box if there are more
EVERY = "all ranks"


def show(run: ScriptRun) -> None:
    """Draw the output of the script in a folded panel, with a choice of rank."""
    if not run.printed:
        return
    ranks = sorted({rank for rank, _ in run.printed})
    with st.expander(f"What it printed: {units.count_with_noun(len(run.printed), 'line')}", icon=":material/notes:"):
        st.fragment(_lines)(run, ranks)


def _lines(run: ScriptRun, ranks: list[int]) -> None:
    chosen = EVERY
    if len(ranks) > 1:
        names = [EVERY, *(f"rank {rank}" for rank in ranks)]
        chosen = st.selectbox("Printed by", names, key="script_printed")
    several = chosen == EVERY and len(ranks) > 1
    lines = [
        f"rank {rank}: {line}" if several else line for rank, line in run.printed if chosen in (EVERY, f"rank {rank}")
    ]
    if len(lines) > MOST:
        left_out = f"... {units.count_with_noun(len(lines) - MOST, 'line')} ..."
        lines = [*lines[: MOST // 2], left_out, *lines[-MOST // 2 :]]
    st.code("\n".join(lines), language=None, height=HIGHEST if len(lines) > FEW else "content")
