"""A reader's progress: merging loses nothing, files are read with care, and questions come back in order."""

import json
from datetime import datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lessons
from lessons import progress, returning
from lessons.progress import EMPTY, Answer, ReaderProgress, Score, merge
from lessons.quiz import Item

CHAPTERS = ["first", "second", "third"]
BEGIN = datetime(2026, 3, 1, 8)
NAMES = st.sampled_from(CHAPTERS)
TIMES = st.integers(0, 40).map(lambda n: moment(hours=9 * n))


def moment(**later) -> str:
    return progress.instant(BEGIN + timedelta(**later))


START = moment()


def answer(chapter="first", item="a", sure=1, right=True, at=START, place="quiz", guess=0) -> Answer:
    words = {"chapter": chapter, "item": item, "sure": sure, "right": right, "at": at, "place": place, "guess": guess}
    return Answer(parameters={"n": guess}, **words)


@st.composite
def answers(draw) -> Answer:
    """One answer; time, question and place decide the rest, as they do for a reader."""
    at, chapter, item = draw(TIMES), draw(NAMES), draw(st.sampled_from("abc"))
    place = draw(st.sampled_from(["predict", "quiz", "again"]))
    dice = Random(f"{at} {chapter} {item} {place}")
    return answer(chapter, item, dice.randrange(3), dice.random() < 0.6, at, place, dice.choice([1, 2.5, "x"]))


DOCUMENTS = st.builds(
    lambda answers, passed, places, scores: merge(
        EMPTY, ReaderProgress(answers=tuple(answers), passed=tuple(passed), places=places, scores=scores)
    ),
    st.lists(answers(), max_size=12),
    st.lists(NAMES, max_size=3),
    st.dictionaries(NAMES, st.sampled_from(["top", "middle"])),
    st.dictionaries(NAMES, st.builds(Score, score=st.integers(0, 100), at=TIMES)),
)


def some_documents(count: int) -> list[ReaderProgress]:
    """Documents that differ in all that merging looks at, the same ones every time."""
    dice = Random(5)
    found = []
    for _ in range(count):
        given = [
            answer(
                dice.choice(CHAPTERS), dice.choice("abc"), dice.randrange(3), dice.random() < 0.6,
                moment(hours=9 * dice.randrange(40), seconds=dice.randrange(2)),
            )
            for _ in range(dice.randrange(12))
        ]  # fmt: skip
        chosen = dice.sample(CHAPTERS, dice.randrange(4))
        scores = {
            name: Score(score=score, at=at, solution=f"{score} {at}", seed=score, digests=("a", at))
            for name, score, at in ((name, dice.randrange(3), moment(hours=dice.randrange(3))) for name in chosen)
        }
        places = {name: dice.choice(["top", "middle"]) for name in dice.sample(CHAPTERS, dice.randrange(4))}
        one = ReaderProgress(answers=tuple(given), passed=tuple(chosen), places=places, scores=scores)
        found.append(merge(EMPTY, one))
    return found


@given(DOCUMENTS, DOCUMENTS)
def test_merging_loses_no_answer_nothing_that_was_passed_and_no_better_score(one, other):
    both = merge(one, other)
    assert set(map(Answer.model_dump_json, both.answers)) == {
        a.model_dump_json() for a in (*one.answers, *other.answers)
    }
    assert set(both.passed) == {*one.passed, *other.passed}
    assert both.places == {**one.places, **other.places}
    for side in (one, other):
        assert all(both.scores[chapter].score >= score.score for chapter, score in side.scores.items())
    assert [a.at for a in both.answers] == sorted(a.at for a in both.answers)


@given(DOCUMENTS, DOCUMENTS, DOCUMENTS)
def test_it_does_not_matter_in_which_order_tabs_write(one, two, three):
    assert merge(merge(one, two), three) == merge(one, merge(two, three))
    assert merge(one, one) == one
    flipped = merge(two, one)
    assert flipped.model_copy(update={"places": {}}) == merge(one, two).model_copy(update={"places": {}})


@given(DOCUMENTS)
def test_a_document_is_read_as_it_was_written(one):
    again = progress.read(one.text())
    assert again == one and list(again.places) == list(one.places)
    assert set(json.loads(one.text())) == {"lockstep", "reader", "answers", "passed", "places", "scores"}


def test_an_answer_is_written_as_other_programs_read_it():
    assert json.loads(EMPTY.with_answer(answer(guess=2)).text())["answers"] == [
        {
            "chapter": "first", "item": "a", "parameters": {"n": 2}, "guess": 2, "sure": 1, "right": True,
            "place": "quiz", "at": "2026-03-01T08:00:00.000Z",
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text, said",
    [
        ("what?", "the file is not JSON"),
        ("[]", "not a progress file of Lockstep"),
        ("{}", 'it has no "lockstep"'),
        ('{"lockstep": 2}', "the file has version 2, and this book reads version 1"),
        ('{"lockstep": 1, "answers": 5}', "answers of the file is '5'"),
        ('{"lockstep": 1, "scores": {"first": {"score": 101, "at": "2026-03-01"}}}', "scores.first.score of the file"),
        ('{"lockstep": 1, "scores": {"first": {"score": 1, "at": 5}}}', "a time is text such as"),
        (" " * (progress.LIMIT + 1), "has 2,000,001 bytes, but a progress file has at most 2,000,000"),
    ],
)
def test_a_file_that_is_no_progress_is_refused_in_a_sentence(text, said):
    with pytest.raises(ValueError) as error:
        progress.read(text)
    assert said in str(error.value) and "\n" not in str(error.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["lockstep", "answers", "at", "scores"]), x),
    )
)
def test_whatever_a_file_holds_it_is_read_or_refused(value):
    try:
        assert isinstance(progress.read(json.dumps(value)), ReaderProgress)
    except ValueError as error:
        assert "\n" not in str(error)


def test_every_question_of_the_book_can_be_answered_whatever_it_draws():
    given = {"sure": 1, "right": True, "place": "quiz", "at": progress.now()}
    for chapter in map(lessons.chapter, lessons.CHAPTERS):
        for item in chapter.items:
            guess = item.choices[0].key if item.choices else 1.0
            for parameters in item.all_parameters():
                asked = {"chapter": chapter.name, "item": item.name, "parameters": parameters, "guess": guess}
                assert Answer.model_validate(asked | given).parameters == parameters


def test_what_the_book_does_not_have_is_kept_but_not_counted():
    chapter = lessons.chapter("stragglers")
    item = chapter.item("elsewhere")
    there = {"chapter": "stragglers", "item": "elsewhere", "guess": "noise", "sure": 2, "place": "quiz"}
    there |= {"parameters": item.all_parameters()[0], "right": True, "at": moment()}
    old = [{"chapter": "burnt"}, {"item": "gone"}, {"guess": "no such choice"}, {"guess": 3}, {"parameters": {"n": 1}}]
    every = (
        Answer(**there),
        *(Answer(**{**there, **change, "at": moment(days=n + 1)}) for n, change in enumerate(old)),
    )
    one = progress.read(ReaderProgress(answers=every).text())
    assert len(one.answers) == 6
    (counted,) = returning.valid_answers(one, [chapter])
    assert not counted.right  # whatever the file says
    assert returning.standing([counted]) == (1, 0, 1)


def test_wrong_and_sure_comes_back_first_then_wrong_then_unsure_then_known():
    given = [
        answer(item="known", sure=2), answer(item="unsure", sure=0), answer(item="wrong", right=False, sure=1),
        answer(item="later", right=False, sure=2, at=moment(hours=1)), answer(item="sure", right=False, sure=2),
    ]  # fmt: skip
    coming = returning.returns(sorted(given, key=lambda a: a.at), CHAPTERS)
    assert [one.item for one in coming] == ["sure", "later", "wrong", "unsure", "known"]
    assert [one.item for one in returning.due(coming, moment(hours=1))] == ["sure", "later", "wrong"]
    assert [one.item for one in returning.due(coming, moment(days=1))] == ["sure", "later", "wrong", "unsure", "known"]


def test_what_is_known_comes_back_after_longer_and_longer_and_at_once_when_forgotten():
    given, day = [], 0
    for wait in (*returning.INTERVALS, returning.INTERVALS[-1]):
        given.append(answer(at=moment(days=day)))
        given.append(answer(at=moment(days=day, minutes=1)))  # twice in a day is once
        (one,) = returning.returns(given, CHAPTERS)
        assert one.at == moment(days=day + wait, minutes=1)
        day += wait + 1
    (one,) = returning.returns([*given, answer(right=False, at=moment(days=day))], CHAPTERS)
    assert (one.urgency, one.at) == (1, moment(days=day))


def test_what_was_known_once_comes_back_when_a_later_chapter_is_begun():
    early, late = answer("first"), answer("second", at=moment(hours=2))
    assert returning.returns([early, late], CHAPTERS)[0].at == moment(hours=2)
    assert returning.returns([early, late], CHAPTERS[::-1])[0].at == moment(days=1)
    again = answer("first", at=moment(days=1))
    later = answer("second", at=moment(days=1, hours=2))
    assert returning.returns([early, again, later], CHAPTERS)[0].at == moment(days=4)


@given(st.lists(answers(), max_size=20), TIMES)
def test_every_question_that_was_answered_comes_back_once(given, when):
    ordered = merge(EMPTY, ReaderProgress(answers=tuple(given))).answers
    coming = returning.returns(ordered, CHAPTERS)
    assert sorted((one.chapter, one.item) for one in coming) == sorted({a.question for a in given})
    wrong = {a.question for a in ordered} - {a.question for a in ordered if a.right}
    assert wrong <= {(one.chapter, one.item) for one in returning.due(coming, max([when, *(a.at for a in ordered)]))}


def test_a_question_comes_back_with_other_numbers_where_there_are_others():
    many, one = Item("m", "", "f", "", {"n": [1, 2, 3]}), Item("o", "", "f", "", {"n": [1]})
    for seed in range(20):
        assert returning.new_parameters(many, [answer(guess=2)], seed)["n"] in (1, 3)
        assert returning.new_parameters(one, [answer(guess=1)], seed) == {"n": 1}


def test_a_test_asks_each_question_once_before_any_comes_again():
    items = [("first", Item(name, "", "f", "", {"n": [1, 2, 3]})) for name in "abcd"]
    drawn = returning.draw_test(items, seed=1)
    assert len(drawn) == 10 and {item.name for _, item, _ in drawn[:4]} == set("abcd")
    asked = [(item.name, values["n"]) for _, item, values in drawn]
    assert len(set(asked)) == 10 and drawn == returning.draw_test(items, seed=1) != returning.draw_test(items, seed=2)


def test_the_first_answers_are_what_counts():
    given = [answer(right=False, sure=2), answer(at=moment(days=1)), answer(item="b"), answer(item="c", right=False)]
    assert returning.standing(given) == (3, 1, 1)


def report(score: int, seed: int = 1) -> dict:
    marks = [{"name": "right", "points": 100, "earned": score, "observed": "so"}]
    return {"chapter": "first", "score": score, "seed": seed, "marks": marks}


def test_the_best_solution_stays_with_its_score_its_seed_and_its_digests():
    done = EMPTY.with_grade(report(40), "a").with_grade(report(70, 2), "b").with_grade(report(60), "c")
    (kept,) = progress.read(done.text()).scores.values()
    assert (kept.score, kept.solution, kept.seed) == (70, "b", 2)
    assert kept.digests == (progress.digest("b"), progress.digest(progress.marks(report(70, 2))))


def test_of_a_solution_that_is_too_long_the_score_is_kept_alone():
    (kept,) = EMPTY.with_grade(report(70), "x" * (progress.LONGEST + 1)).scores.values()
    assert (kept.score, kept.solution, kept.digests) == (70, "", None)
