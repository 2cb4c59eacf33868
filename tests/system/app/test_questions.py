"""Questions: each is an experiment of its own, and what it finds is so."""

import functools
import re

import numpy as np
import pytest

from app.guide import deck, verdicts
from app.guide.cards import CARDS
from app.guide.questions import ALL, OF_METHODS, QUESTIONS, find_question, question_of
from app.session import session
from cluster.waiting.pieces import NETWORK
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from experiments.viewer.curves import AXES
from experiments.viewer.lanes import lane_names
from tracing import KINDS


@pytest.fixture
def folders(own_folder):
    """Each test has its own runs: what others have stored or left running would change what a page says."""
    return own_folder


def grows(name, low, high):
    """The figure of the answer is so many times that of the reference."""
    return lambda now, was: low <= now[name] / was[name] <= high


def within_a_point(now, was):
    return abs(now["accuracy"] - was["accuracy"]) <= 0.01


def same_model(now, was):
    return now["weights"] == was["weights"]


FINDS = {
    "What if the network is slow?": (
        grows("seconds", 3.6, 4), lambda now, _: 0.88 <= now["share_communicate"] <= 0.92, same_model,
    ),
    "What does one straggler cost a synchronous step?": (grows("seconds", 1.9, 2.1), same_model),
    "What if no worker waits for the straggler?": (
        grows("seconds", 0.99, 1.01), grows("samples", 2, 2.3), lambda now, _: 2.8 <= now["staleness_mean"] <= 3.2,
    ),
    "Can we send 100 times fewer bytes?": (grows("bytes", 0.0095, 0.0105), within_a_point),
    "Must workers talk after every step?": (
        grows("bytes", 0.1, 0.1), grows("seconds", 0.3, 0.499), within_a_point,
    ),
    "Do more workers always help?": (
        grows("samples", 1, 1), grows("seconds", 0.501, 0.7), grows("steps", 0.25, 0.25),
        grows("held_out_loss", 1.2, 10), lambda now, _: now["share_communicate"] > 0.8,
    ),
    "Does it matter if gradients come late?": (
        lambda now, _: now["accuracy"] < 0.25, lambda _, was: was["accuracy"] > 0.9,
    ),
    "Why does a pipeline idle?": (
        grows("seconds", 0.48, 0.52), lambda _, was: 0.74 <= was["share_wait"] <= 0.75,
        lambda now, was: now["share_wait"] < was["share_wait"] / 2,
    ),
    "What happens when a worker dies?": (lambda now, was: now["steps"] < was["steps"],),
    "Can training survive the loss of a worker?": (
        lambda now, was: now["steps"] == 200 > was["steps"], lambda now, _: now["accuracy"] > 0.9,
    ),
    "Two of eight workers lie: can the others still learn?": (
        lambda _, was: was["held_out_loss"] is None and was["steps"] < 10, lambda now, _: now["accuracy"] > 0.9,
    ),
    "Who waits for a slow worker in asynchronous DiLoCo?": (
        lambda now, was: now["share_wait"] < 0.05 and 0.38 < was["share_wait"] < 0.42, grows("seconds", 0.98, 1.02),
        grows("samples", 2.7, 3), lambda now, _: 2.7 <= now["staleness_mean"] <= 3,
    ),
    "NoLoCo averages only pairs: does a slow worker delay only its partner?": (
        grows("seconds", 2.8, 3), lambda now, _: 0.45 < now["share_wait"] < 0.5,
    ),
    "Does it save time to send a fragment while workers continue to train?": (
        grows("bytes", 0.95, 1.05), grows("seconds", 0.7, 0.78),
        lambda now, was: now["share_communicate"] < 0.025 and 0.28 < was["share_communicate"] < 0.3,
    ),
    "What does SCAFFOLD pay for its control variates?": (grows("bytes", 2, 2), grows("seconds", 1.3, 1.37)),
    "CHOCO sends only a tenth of the parameters: can workers still move all the way to their neighbours' mean?": (
        lambda now, _: now["accuracy"] < 0.25, lambda _, was: was["accuracy"] > 0.9,
    ),
    "Decoupled DiLoCo ends a round as soon as one worker is ready: does a slow worker hold up the others?": (
        grows("samples", 3.2, 3.6), lambda now, was: now["share_wait"] < 0.05 and 0.45 < was["share_wait"] < 0.52,
    ),
    "Each of four ranks has a quarter of every sequence: do all compute for the same time?": (
        grows("seconds", 1.2, 1.25), grows("held_out_loss", 0.999, 1.001),
        lambda now, was: 0.215 <= now["share_wait"] <= 0.225 and was["share_wait"] < 0.001,
    ),
}  # fmt: skip
DIES = "What happens when a worker dies?"
RIGHT = {  # the prediction that these figures bear out
    "What if the network is slow?": "Only the clock changes",
    "What does one straggler cost a synchronous step?": "Twice the time: all wait for it",
    "What if no worker waits for the straggler?": "Twice the samples, with older gradients",
    "Can we send 100 times fewer bytes?": "Yes, for a point of accuracy at most",
    "Must workers talk after every step?": "No: every ten steps will do",
    "Do more workers always help?": "Sixteen are less than twice as fast as four",
    "Does it matter if gradients come late?": "Twenty steps late, training breaks down",
    "Why does a pipeline idle?": "With the batch in one piece, one stage works at a time",
    DIES: "All of them stop",
    "Can training survive the loss of a worker?": "Yes, if the others do not wait for it",
    "Two of eight workers lie: can the others still learn?": "Yes, if they use medians instead of means",
    "Who waits for a slow worker in asynchronous DiLoCo?": "Hardly anybody",
    "NoLoCo averages only pairs: does a slow worker delay only its partner?": "No: in the end all of them wait",
    "Does it save time to send a fragment while workers continue to train?": "Yes: about a quarter on a slow network",
    "What does SCAFFOLD pay for its control variates?": "Twice the bytes",
    "CHOCO sends only a tenth of the parameters: can workers still move all the way to their "
    "neighbours' mean?": "No: training breaks down",
    "Decoupled DiLoCo ends a round as soon as one worker is ready: does a slow worker hold up the others?": "No: they "
    "hardly ever wait",
    "Each of four ranks has a quarter of every sequence: do all compute for the same time?": "No: the last takes more "
    "than twice as long as the first",
}


def test_every_question_is_another_experiment_than_the_others_and_than_what_it_is_compared_with():
    experiments = [question.experiment.key() for question in ALL]
    assert len({*experiments, Experiment().key()}) == len(ALL) + 1
    assert all(question.reference != question.experiment and question.axis in AXES for question in ALL)


def test_the_question_of_a_run_is_found_by_its_experiment_only():
    assert all(find_question(question.experiment) is question for question in ALL)
    assert find_question(Experiment()) is None and find_question(QUESTIONS[0].experiment.change(seed=1)) is None


@functools.cache
def made(query):
    return run(Experiment.from_query(query))


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.asks)
def test_what_a_question_finds_is_so(question):
    now, was = made(question.query), made(question.against)
    assert now.status == ("failed" if question.asks == DIES else "finished")
    for number, claim in enumerate(FINDS[question.asks]):
        assert claim(now.summary, was.summary), (number, now.summary, was.summary)


SAYS = {  # of each card: the prediction that is right, what its run shows, and what it says of it
    "Slow one worker down": (
        "They wait for it", lambda now, _: waiting(now, 3) < 0.05 < 0.3 < waiting(now, 0),
        ["They wait", "same 200 steps take 2 times as long",
         "the 3 others spend 51.7 % of their time waiting (38.8 % over all 4 workers)", "the same, bit for bit"],
    ),
    "Let nobody wait": (
        "Gradients go stale", lambda now, _: now.summary["staleness_mean"] > 2 and not caused(now, "worker"),
        ["In 100 ms", "2.2 times as many samples as synchronous SGD", "agree in every step whether time is up",
         "78 % of the remaining grey is the network, and the rest is the server", "changes 3 times on average"],
    ),
    "Kill a worker": (
        "They stop", lambda now, was: now.summary["updates"] < was.summary["updates"] / 2,
        ["They stop, after 94 of 200 steps", "the gradient of worker 2 never comes"],
    ),
    "Send less": (
        "One point at most", lambda now, was: now.summary["bytes"] < was.summary["bytes"] / 90,
        ["times fewer bytes are sent", "added to the next gradient", "of the workers' time"],
    ),
}  # fmt: skip


def waiting(run, rank):
    """The share of its time that a rank waited."""
    busy = run.trace.busy()[rank]
    return busy[KINDS.index("wait")] / busy.sum()


def caused(run, role):
    """The seconds of waiting that ranks of this role caused by being at work, stopped or queued for."""
    of = [name.startswith(role) for name in lane_names(run)]
    return np.delete(run.causes.training[of], NETWORK, axis=1).sum()


def test_workers_that_wait_for_no_worker_still_wait_a_third_of_their_time_mostly_for_the_network():
    now = made(QUESTIONS[2].query)
    waits = now.causes.training.sum(axis=0)
    assert 0.3 <= now.summary["share_wait"] <= 0.36 and waits[NETWORK] > waits.sum() / 2 and not caused(now, "worker")
    assert "Workers still wait for a third of their time" in QUESTIONS[2].finds


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.title)
def test_what_a_card_says_is_computed_from_its_runs_and_so_is_the_prediction_that_is_right(card):
    now, was = made(card.question.query), made(card.question.against)
    right, holds, says = SAYS[card.title]
    assert card.options[card.right] == right and card.judge(now, was) == card.right and holds(now, was)
    assert [words for words in says if words not in card.says(now, was)] == []


def test_a_card_tells_the_losses_of_both_runs():
    (card,) = (card for card in CARDS if card.title == "Let nobody wait")
    said = card.says(made(card.question.query), made(card.question.against))
    losses = re.search(r"held-out loss is then ([\d.]+), and that of synchronous SGD ([\d.]+)\.", said).groups()
    assert list(map(float, losses)) == pytest.approx([0.099, 0.170], rel=0.05)  # how sums are rounded moves them by 1 %


def ask(opened, question):
    """Open a question by its square."""
    opened.button(f"square-{QUESTIONS.index(question) + 1}").click().run()


def squares(opened) -> list[str]:
    """Return the squares' marks and names: "1 Question 1, open"."""
    labels = [opened.button(f"square-{n}").label for n in range(1, len(QUESTIONS) + 1)]
    return [re.sub(r"\*\*|:gray\[|:.*$", "", label.replace(":gray[", "")) for label in labels]


def shown_answers(opened) -> list[str]:
    return [info.value for info in opened.info if any(question.finds in info.value for question in QUESTIONS)]


def captions(opened) -> str:
    return " ".join(caption.value for caption in opened.caption)


def test_a_question_sets_the_controls_runs_them_and_lays_the_run_over_what_it_is_compared_with(page, stored):
    question = QUESTIONS[2]
    stored(Experiment())
    pinned, answer, reference = (stored(e) for e in (Experiment(seed=9), question.experiment, question.reference))
    opened = page(f"pin={pinned.name}")
    assert not any(question.finds in info.value for info in opened.info)
    ask(opened, question)
    opened.button("just-show").click().run()
    assert not opened.exception
    assert opened.session_state.asked == question.experiment and opened.session_state.algorithm == "asgd"
    assert opened.session_state.shown == str(answer) and opened.session_state.axis == "seconds"
    assert opened.query_params["pin"] in (reference.name, [reference.name])
    (told,) = [info.value for info in opened.info if question.finds in info.value]
    assert told.endswith("1 pinned run replaced for this comparison.")


def test_a_run_that_the_last_question_pinned_is_no_pin_of_the_reader_that_the_next_one_replaces(page, stored):
    first, third = QUESTIONS[0], QUESTIONS[2]
    for experiment in (Experiment(), first.experiment, third.experiment, third.reference):
        stored(experiment)
    opened = page("")
    for question in (first, third):
        ask(opened, question)
        opened.button("just-show").click().run()
        (told,) = [info.value for info in opened.info if question.finds in info.value]
        assert "replaced" not in told
    assert not opened.exception and opened.query_params["pin"]


def test_the_right_prediction_is_the_one_that_the_figures_bear_out_and_is_first_as_often_as_second():
    assert {question.asks: question.options[question.right] for question in ALL} == RIGHT
    for some in (QUESTIONS, OF_METHODS):
        assert sum(question.right for question in some) == len(some) / 2


def test_predictions_are_counted_once_and_the_path_offers_the_next_question(page, stored):
    def path(opened) -> str:
        (told,) = [html.value for html in opened.get("html") if "questions</b>" in html.value]
        return told

    first, second, third = QUESTIONS[:3]
    for experiment in (Experiment(), first.experiment, second.experiment, third.experiment, third.reference):
        stored(experiment)
    opened = page()
    assert "predict, then see" in path(opened) and opened.button("path-next").label.endswith(first.asks)
    opened.button("path-next").click().run()
    assert opened.session_state.asked == Experiment(), "it asks before it runs"
    opened.button(f"predicted-{first.right}").click().run()
    assert opened.session_state.asked == first.experiment and "1 of 1 predicted right" in path(opened)
    assert any("Right" in info.value and first.finds in info.value for info in opened.info)
    opened.button("answer-next").click().run()
    opened.button(f"predicted-{1 - second.right}").click().run()
    assert "1 of 2 predicted right" in path(opened)
    assert squares(opened)[:3] == [
        "✓ Question 1, predicted right",
        "✗ Question 2, predicted wrong",
        "3 Question 3, open",
    ]
    assert any("Not quite" in info.value and second.finds in info.value for info in opened.info)
    ask(opened, second)
    opened.button(f"predicted-{second.right}").click().run()
    assert "1 of 2 predicted right" in path(opened), "who has seen the answer does not predict it"
    assert opened.button("path-next").label == f"3. {third.asks}"


def test_a_question_is_closed_by_another_run_and_by_a_card(page, stored):
    def asks(opened) -> bool:
        return "just-show" in [button.key for button in opened.button]

    for experiment in (Experiment(), Experiment(workers=2), QUESTIONS[0].experiment):
        stored(experiment)
    opened = page(unfolded=False, at_once=True)
    opened.session_state["welcome"] = True
    opened.run()
    opened.button("path-next").click().run()
    assert asks(opened)
    opened.button("card-2").click().run()
    assert not asks(opened)
    opened.button("path-next").click().run()
    opened.session_state["workers"] = 2
    opened.run()
    assert not opened.exception and not asks(opened)


def test_the_question_of_an_algorithm_is_offered_while_it_is_chosen_and_keeps_the_path_at_ten(page, stored):
    question = question_of("robust")
    for experiment in (Experiment(), question.experiment, question.reference):
        stored(experiment)
    assert question_of("sync_sgd") is None and "method-question" not in [one.key for one in page().button]
    opened = page(question.against)
    opened.button("method-question").click().run()
    assert f"**{question.asks}**" in [one.value for one in opened.markdown]
    opened.button(f"predicted-{question.right}").click().run()
    assert not opened.exception and opened.session_state.asked == question.experiment
    assert any("Right" in info.value and question.finds in info.value for info in opened.info)
    assert opened.session_state.verdicts == verdicts.read(f'{{"{question.query}": true}}') == {question.query: True}
    assert len(squares(opened)) == 10 and opened.button("path-next").label.endswith(QUESTIONS[0].asks)


def test_each_square_opens_its_question(page, stored):
    stored(Experiment())
    opened = page()
    for number, question in enumerate(QUESTIONS, 1):
        opened.button(f"square-{number}").click().run()
        assert not opened.exception
        assert f"**{number}. {question.asks}**" in [one.value for one in opened.markdown]


def test_a_question_says_which_run_it_starts_from_and_what_changes_there(page, stored):
    straggler = QUESTIONS[1]
    for experiment in (Experiment(), QUESTIONS[0].experiment):
        stored(experiment)
    opened = page("network=1GbE")
    ask(opened, straggler)
    assert (
        "Starts from: Synchronous SGD on handwritten digits, 4 workers, 10GbE. What changes: worker 3 four times "
        "slower. The page below still shows Synchronous SGD on handwritten digits, network 1GbE. Once you "
        "answer, the run in question takes its place."
    ) in captions(opened)
    opened = page()
    ask(opened, straggler)
    assert "What changes: worker 3 four times slower." in captions(opened) and "still shows" not in captions(opened)


def test_a_question_names_all_settings_that_its_run_starts_from(page, stored):
    stored(Experiment())
    opened = page()
    ask(opened, QUESTIONS[2])
    start = "Synchronous SGD on handwritten digits, 4 workers, 10GbE, worker 3 four times slower, time budget 100 ms"
    assert f"Starts from: {start}. What changes: Synchronous SGD → Asynchronous SGD" in captions(opened)


def test_a_card_names_the_algorithm_that_it_asks_about_while_the_page_shows_another(page, stored):
    nobody_waits, kill = CARDS[1], CARDS[2]
    stored(Experiment())
    stored(nobody_waits.question.experiment), stored(nobody_waits.question.reference)
    opened = page(unfolded=False)
    opened.session_state["welcome"] = True
    opened.run()
    opened.button("card-1").click().run()
    opened.button(f"option-{nobody_waits.right}").click().run()
    assert opened.session_state.asked.algorithm == "asgd"
    opened.button("card-2").click().run()
    (asked,) = [one.value for one in opened.markdown if f"**{kill.title}.**" in one.value]
    assert "in the middle of a run of Synchronous SGD. What do the other 3 do?" in asked
    assert "Starts from: Synchronous SGD on handwritten digits, 4 workers, 10GbE." in captions(opened)
    assert "The page below still shows Asynchronous SGD on handwritten digits. Once you answer" in captions(opened)


def test_an_answer_is_shown_only_once_its_question_was_asked_or_skipped(page, stored):
    question = QUESTIONS[0]
    stored(Experiment()), stored(question.experiment)
    opened = page(f"{question.query}&axis=seconds")
    assert not opened.exception and opened.session_state.shown and shown_answers(opened) == []
    ask(opened, question)
    assert shown_answers(opened) == []
    opened.button("just-show").click().run()
    assert len(shown_answers(opened)) == 1 and "predicted right" not in shown_answers(opened)[0]
    assert squares(opened)[0] == "1 Question 1, answer seen"
    ask(opened, question)
    opened.button(f"predicted-{question.right}").click().run()
    assert squares(opened)[0] == "1 Question 1, answer seen", "who has seen the answer does not predict it"


def test_an_answer_stands_next_to_no_comparison_other_than_its_own(page, stored, canvases):
    def ghosts(opened) -> bool:
        return any("previous run" in str(header) for header, _ in canvases(opened).values())

    network, straggler = QUESTIONS[:2]
    for experiment in (Experiment(), network.experiment, straggler.experiment, Experiment(workers=2)):
        stored(experiment)
    opened = page(unfolded=False, at_once=True)
    opened.session_state["workers"] = 2
    opened.run()
    assert any("the previous run" in one.value or ":material/history:" in one.value for one in opened.markdown)
    assert ghosts(opened)
    for question in (network, straggler):
        ask(opened, question)
        opened.button("just-show").click().run()
        assert len(shown_answers(opened)) == 1
        assert not any(":material/history:" in one.value for one in opened.markdown) and not ghosts(opened)
        assert any(":material/keep:" in one.value for one in opened.markdown)


def test_a_browser_brings_back_the_score_and_the_verdict_after_a_reload(page, stored):
    network, straggler = QUESTIONS[:2]
    stored(Experiment()), stored(network.experiment)
    opened = page(network.query)
    opened.session_state["verdicts"] = verdicts.read(f'{{"{network.query}": true, "{straggler.query}": null}}')
    opened.run()
    assert squares(opened)[:2] == ["✓ Question 1, predicted right", "2 Question 2, answer seen"]
    assert "Right" in shown_answers(opened)[0] and "1 of 1 predicted right" in shown_answers(opened)[0]


@pytest.mark.parametrize("text", [None, "", "{", "[]", "1", '{"network=1GbE": 1, "no question": true}'])
def test_what_is_no_verdict_is_not_read_from_a_browser(text):
    assert verdicts.read(text) == {}


@pytest.mark.parametrize(("right", "mark"), [(True, "✓"), (False, "✗")])
def test_a_card_and_its_questions_square_bear_the_same_mark(page, stored, right, mark):
    card = CARDS[2]
    stored(Experiment())
    opened = page(unfolded=False)
    opened.session_state["welcome"] = True
    opened.session_state["verdicts"] = {card.question.query: right}
    opened.run()
    assert opened.button("card-2").label.startswith(f"**{card.title}** {mark}")
    assert squares(opened)[QUESTIONS.index(card.question)].startswith(mark)
    assert not any(one in opened.button("card-0").label for one in "✓✗")


def test_a_prediction_on_a_card_counts_as_one_for_its_question(page, stored):
    card = CARDS[0]
    stored(Experiment())
    stored(card.question.experiment)
    opened = page(unfolded=False)
    opened.session_state["welcome"] = True
    opened.run()
    opened.button("card-0").click().run()
    opened.button(f"option-{card.right}").click().run()
    assert opened.session_state.verdicts == {card.question.query: True}


def test_a_browser_that_has_not_heard_of_the_new_axis_does_not_bring_the_old_one_back(page, stored):
    question = QUESTIONS[2]
    for experiment in (Experiment(), question.experiment, question.reference):
        stored(experiment)
    opened = page()
    (switch,) = (group for group in opened.get("button_group") if group.label == "Curves against")
    old = switch.set_value("step")._widget_state
    ask(opened, question)
    opened.button("just-show").click().run()
    late = opened._tree.get_widget_states()
    late.widgets.append(old)
    opened._run(late)
    assert opened.session_state.axis == "seconds" and opened.query_params["axis"] in ("seconds", ["seconds"])


def test_what_a_card_has_found_is_not_said_once_more_while_the_next_card_asks(page, stored):
    card = CARDS[0]
    stored(Experiment())
    folder = stored(card.question.experiment)
    opened = page(unfolded=False)
    asked = [deck.AskedCard(n, CARDS[n].standard, Experiment(), 0.08, own=True) for n in range(2)]
    opened.session_state["answers"] = {card.question.experiment.key(): deck.CardAnswer(1, asked[0])}
    opened.session_state["welcome"] = True
    opened.session_state["shown"] = str(folder)
    opened.session_state["card"], opened.session_state["card_over"] = asked[1], opened.session_state["asked"]
    opened.run()
    assert not opened.exception and not any(card.question.finds in info.value for info in opened.info)
    opened.session_state["answers"], opened.session_state["verdicts"] = {}, {card.question.query: True}
    opened.run()
    assert any(card.question.finds in info.value for info in opened.info)


def test_a_card_that_asks_is_closed_by_another_run(page, stored):
    stored(Experiment())
    stored(Experiment(workers=2))
    opened = page(unfolded=False, at_once=True)
    opened.session_state["welcome"] = True
    opened.run()
    opened.button("card-2").click().run()
    assert "option-0" in [one.key for one in opened.button]
    opened.run()
    assert "option-0" in [one.key for one in opened.button]  # not by what is drawn again
    opened.session_state["workers"] = 2
    opened.run()
    assert not opened.exception
    assert "option-0" not in [one.key for one in opened.button] and "card-2" in [one.key for one in opened.button]


def test_a_question_is_answered_also_where_what_it_is_compared_with_cannot_be_run(page, stored, monkeypatch):
    question = QUESTIONS[3]
    stored(Experiment(seed=8))
    answer, submit = stored(question.experiment), session.pool().submit

    def refuse(owner, work):
        if owner.endswith("/question"):
            raise ValueError("100 runs are waiting, and no more can; try again in a minute.")
        return submit(owner, work)

    opened = page("seed=8")
    monkeypatch.setattr(session.pool(), "submit", refuse)
    ask(opened, question)
    opened.button("just-show").click().run()
    assert not opened.exception and "pin" not in opened.query_params
    assert opened.session_state.shown == str(answer)
