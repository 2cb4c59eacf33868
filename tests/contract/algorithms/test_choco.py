"""Numbers of an independent program in float64: pure gossip on a ring of four, which sends one of two coordinates."""

import numpy as np
import pytest

from algorithms.decentralized.choco import ALGORITHM
from experiments.specification.experiment import Experiment
from tests.training import Springs, train
from workloads.workload import Evaluation

START = np.array([[4.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, -2.0]])
ONE_OF_TWO = {"fraction": 0.5, "consensus": 0.4}


class Still(Springs):
    """No gradient at all, from a start of its own."""

    def __init__(self, start):
        super().__init__([0.0] * 64, parameters=len(start))
        self.from_here = np.asarray(start, float)

    def start(self, seed):
        return self.from_here.copy()

    def gradient(self, w, batch):
        return 0.0, np.zeros_like(w)

    def evaluate(self, w):
        return Evaluation(0.0, np.nan)


def gossip(steps, **settings):
    """The models of all workers after some steps."""
    run = train("choco", lambda rank: Still(START[rank]), 4, ONE_OF_TWO | settings, steps=steps)
    return np.array(run.models)


def test_it_gossips_as_an_independent_program_does():
    first = [[2.933333333333, 1], [0.533333333333, 1.866666666667], [0, 2.2], [0.533333333333, -1.066666666667]]
    third = [[1.634370, 0.899259], [1.031111, 1.574519], [0.265481, 1.349037], [1.069037, 0.177185]]
    assert np.allclose(gossip(1), first, atol=1e-12) and np.allclose(gossip(3), third, atol=1e-6)


def test_workers_agree_on_the_exact_mean_at_a_linear_rate_though_they_never_send_a_whole_model():
    apart = [np.square(gossip(steps) - [1, 1]).sum() for steps in (20, 40, 60)]
    assert apart == pytest.approx([1.318e-5, 1.527e-11, 1.963e-17], rel=1e-3)


def test_too_long_a_consensus_step_drives_workers_apart():
    assert np.square(gossip(100, consensus=0.8) - [1, 1]).sum() > np.square(START - [1, 1]).sum()


@pytest.mark.parametrize("fraction", [0.2, 0.5, 1])
def test_the_mean_of_all_models_moves_as_synchronous_sgd_would(fraction):
    centres = np.arange(4.0)

    def mean(name, **settings):
        springs = [Springs([centre] * 4, starts=[5.0], parameters=6) for centre in centres]
        settings = {"learning_rate": 0.1} | settings
        return np.mean(train(name, lambda rank: springs[rank], 4, settings, steps=12).models, axis=0)

    assert mean("choco", fraction=fraction, consensus=0.3) == pytest.approx(mean("sync_sgd"), rel=1e-9)


def test_a_message_holds_a_tenth_of_the_model_and_its_indices():
    springs = Springs([1.0] * 4, parameters=40)
    run = train("choco", springs, 4, {"fraction": 0.1}, steps=5)
    assert run.outcome.trace().traffic().sum() == 4 * 2 * 5 * (4 * 8 + 4 * 4)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, None),
        ({"fraction": 0.25, "consensus": 0.75}, None),
        ({"fraction": 0.01}, "drive workers apart"),
        ({"fraction": 0.01, "workers": 1}, None),
        ({"fraction": 0.2, "consensus": 0.8}, "0.6 or less"),
        ({"fraction": 1}, "takes 0.4 of the way"),
        ({"fraction": 1, "consensus": 1}, "mixes after its step"),
    ],
)
def test_a_note_says_when_the_consensus_step_is_too_long_and_when_it_is_gossip_of_models(settings, said):
    notes = [
        note for note in ALGORITHM.notes(Experiment.of({"algorithm": "choco"} | settings)) if "the same" not in note
    ]
    assert len(notes) == (said is not None) and (not said or said in notes[0])
