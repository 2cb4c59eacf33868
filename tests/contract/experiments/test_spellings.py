"""Every experiment that can be chosen has three spellings that say the same, and no link leads to a traceback."""

from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.specification.experiment import Experiment
from tests.contract.experiments.strategies import experiments
from tests.unit.experiments.test_experiment import from_command, is_one_friendly_sentence

NAMES = ["algorithm", "workload", "workers", "steps", "slow", "crash", "pause", "network", "settings", "x", "period"]
PAIRS = st.lists(st.tuples(st.sampled_from(NAMES), st.text(max_size=30)))


@given(experiments())
@settings(max_examples=60, deadline=None)
def test_json_link_and_command_line_say_the_same(experiment):
    assert Experiment.from_json(experiment.json()) == experiment
    assert Experiment.from_query(experiment.query()) == experiment
    assert Experiment.from_query("https://example.org/lab/?" + experiment.query() + "#top") == experiment
    assert from_command(experiment.command()) == experiment
    assert Experiment.of(experiment.flat()).key() == experiment.key()


@given(experiments(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_truncated_link_is_an_experiment_or_one_sentence(experiment, data):
    query = experiment.query()
    cut = query[: data.draw(st.integers(0, len(query)))]
    try:
        assert isinstance(Experiment.from_query(cut), Experiment)
    except ValueError as error:
        assert is_one_friendly_sentence(error)


@given(st.text(max_size=300) | PAIRS.map(lambda pairs: "&".join(f"{a}={b}" for a, b in pairs)))
@settings(max_examples=300, deadline=None)
def test_a_hostile_link_is_an_experiment_or_one_sentence(query):
    try:
        assert isinstance(Experiment.from_query(query), Experiment)
    except ValueError as error:
        assert is_one_friendly_sentence(error)
