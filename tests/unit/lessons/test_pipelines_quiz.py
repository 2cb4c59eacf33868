"""The quiz on pipelines: what a question says decides its answer, found by trying every order that it allows."""

from itertools import product
from pathlib import Path

import pytest

from lessons import quiz
from theory import schedules
from theory.pipeline_memory import in_flight_until_weights
from theory.schedule_timing import simulate


def shortest(most, chunks, late):
    """Turns of the shortest step in which stage s never holds more than most[s] micro-batches until W is done.

    F and I take a turn each, and W one if `late`, otherwise none. A state is what each stage has done of F, I and W;
    which micro-batch comes first makes no difference, so each kind takes them in order. A stage may also wait.
    """
    stages, turns = len(most), 0
    states = {((0, 0, 0),) * stages}
    while ((chunks,) * 3,) * stages not in states:
        states = {after for state in states for after in product(*_moves(state, most, chunks, late))}
        turns += 1
    return turns


def _moves(state, most, chunks, late):
    """Return, for each stage, what it may have done after one more turn."""
    for s, (f, i, w) in enumerate(state):
        moves = [(f, i, w)]
        arrived = state[s - 1][0] if s else chunks
        returned = state[s + 1][1] if s + 1 < len(state) else f
        if f < arrived and f - w < most[s]:
            moves.append((f + 1, i, w))
        if i < min(f, returned):
            moves.append((f, i + 1, w if late else i + 1))
        if w < i:
            moves.append((f, i, w + 1))
        yield moves


def idle(most, chunks, late):
    """Turns in which a stage is idle in the shortest step."""
    return shortest(most, chunks, late) - (2 + late) * chunks


SMALL = [(2, 2), (2, 5), (3, 3), (3, 4), (3, 6), (4, 4)]  # stages, micro-batches


@pytest.mark.parametrize(("stages", "chunks"), SMALL)
@pytest.mark.parametrize("late", [True, False])
def test_no_order_in_which_no_stage_holds_more_than_the_first_did_idles_less_than_zb_h1(stages, chunks, late):
    before = schedules.lists("1f1b", stages, chunks)
    assert in_flight_until_weights(before)[0] == stages
    after = simulate(schedules.lists("zb_h1", stages, chunks), {"F": 1, "I": 1, "W": int(late)})
    assert max(in_flight_until_weights(after.lists)) == stages
    assert idle([stages] * stages, chunks, late) == max(after.idle)


def test_where_every_stage_has_its_own_limit_of_1f1b_twice_as_much_is_left():
    before = schedules.lists("1f1b", 3, 4)
    own = in_flight_until_weights(before)
    assert own == [3, 2, 1] and simulate(before, {"F": 1, "B": 2}).idle == [6] * 3
    assert (idle(own, 4, late=True), idle([3] * 3, 4, late=True)) == (4, 2)


def test_the_question_limits_all_stages_to_what_the_first_one_held():
    path = Path(quiz.__file__).parent / "pipelines" / "quiz.toml"
    split = next(item for item in quiz.read(path) if item.name == "split")
    assert "No stage may hold more micro-batches than the first one did before" in " ".join(split.ask.split())
    answers = {half: split.compute("pipelines", {"half": half}) for half in split.draw["half"]}
    left = {late: idle([3] * 3, 4, late) / (2 * (2 + late)) for late in (True, False)}
    assert answers == {
        "as long as the other": "third",
        "two fifths as long as the other": "most",
        "hardly any time": "all",
    }
    assert left == {True: pytest.approx(1 / 3), False: 1}
