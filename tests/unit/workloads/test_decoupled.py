import numpy as np
import pytest

from cluster import simulated
from tests.rows import digits
from workloads.budget import Budget
from workloads.decoupled import outputs
from workloads.task import Task


def module(workload, index=0, count=2, seed=0):
    """A module as its rank has it."""
    made = []

    def program(comm):
        made.append(Task(workload, comm, budget=Budget(steps=1), batch=8, seed=seed).module(index, count))

    assert simulated.run(program, 1).error is None
    return made[0]


def slope(loss, a, place, h=1e-6):
    e = h * np.eye(1, len(a), place)[0]
    return (loss(a + e) - loss(a - e)) / (2 * h)


def some(workload, index=0):
    """(module, features, target) of 8 samples."""
    m = module(workload, index)
    x, target = workload.batch(np.arange(8))
    for below in workload.split(2)[: index + 1]:
        x, _ = below.forward(below.start(0), x)
    return m, x, target


MODELS = [{}, {"model": "cnn", "channels": 2}]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("layers", [0, 1, 2])
def test_a_classifiers_gradients_are_the_slopes_of_its_loss(model, layers):
    m, y, target = some(digits(**model))
    classifier = m.classifier(layers, 5)
    a = classifier.start()
    _, dy, g = classifier.gradient(a, y, target)
    for place in (0, len(a) // 2, len(a) - 1):
        found = slope(lambda a: classifier.gradient(a, y, target)[0], a, place)
        assert g[place] == pytest.approx(found, rel=1e-5, abs=1e-9)
    place = y.size // 3
    found = slope(lambda h: classifier.gradient(a, h.reshape(y.shape), target)[0], y.ravel(), place)
    assert dy.shape == y.shape and dy.flat[place] == pytest.approx(found, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("layers", [0, 1, 2])
def test_a_lesson_is_the_slope_of_half_the_squared_distance_per_sample(labels, layers):
    m, y, target = some(digits())
    synthesiser = m.synthesiser(layers, 5, labels)
    a = synthesiser.start() + 0.1
    d = np.random.default_rng(0).standard_normal(y.shape) / 8

    def loss(a):
        dy, _ = synthesiser.guess(a, y, target)
        return np.square(8 * (dy - d)).sum() / (2 * 8)

    found, g = synthesiser.lesson(a, synthesiser.guess(a, y, target)[1], d)
    assert found == pytest.approx(loss(a))
    for place in (0, len(a) // 2, len(a) - 1):
        assert g[place] == pytest.approx(slope(loss, a, place), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_first_guess_is_nothing_and_has_the_shape_of_the_features(model):
    m, y, target = some(digits(**model))
    synthesiser = m.synthesiser(1, 5, True)
    dy, _ = synthesiser.guess(synthesiser.start(), y, target)
    assert dy.shape == y.shape and not dy.any()


def test_a_guess_for_a_sample_does_not_depend_on_the_others():
    m, y, target = some(digits())
    synthesiser = m.synthesiser(1, 5, True)
    a = synthesiser.start() + 0.1
    both, alone = synthesiser.guess(a, y, target)[0], synthesiser.guess(a, y[:2], target[:2])[0]
    assert both[:2] * 8 == pytest.approx(alone * 2)


@pytest.mark.parametrize("labels", [True, False])
def test_only_with_labels_a_guess_depends_on_them(labels):
    m, y, target = some(digits())
    synthesiser = m.synthesiser(1, 5, labels)
    a = synthesiser.start() + 0.1
    one, other = (synthesiser.guess(a, y, t)[0] for t in (target, (target + 1) % 10))
    assert np.array_equal(one, other) != labels


def test_a_module_whose_inputs_do_not_count_has_the_same_gradient():
    workload = digits()
    m, x, _ = some(workload)
    m = module(workload, index=1)
    w = m.start()
    y, saved = m.forward(w, x)
    dx, g = m.backward(w, saved, np.ones_like(y))
    assert dx is not None and np.array_equal(m.gradient(w, saved, np.ones_like(y)), g)
    assert np.array_equal(m.start(), workload.split(2)[1].start(0))


def test_feedback_is_drawn_as_weights_are_and_is_not_the_weights():
    m = module(digits(width=40))
    w, b = m.start(), m.feedback()
    assert w.shape == b.shape and np.std(b) == pytest.approx(np.std(w), rel=0.05)
    assert abs(np.corrcoef(w, b)[0, 1]) < 0.1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_layer_has_the_same_matrix_wherever_the_model_is_cut(count):
    workload = digits()
    found = [b for index in range(count) for b in module(workload, index, count).direct().matrices]
    whole = module(workload, 0, 1).direct().matrices
    assert [b is None for b in found] == [False] * 5 + [True]
    assert all(np.array_equal(a, b) for a, b in zip(found[:-1], whole[:-1], strict=True))
    assert not np.allclose(whole[0], whole[1])
    assert whole[0].shape == (10, 8) and whole[0].min() > 0 and whole[0].max() < 2 / np.sqrt(10)


def test_direct_feedback_gives_each_layer_the_error_by_its_matrix():
    workload = digits()
    direct, x = module(workload, 0, 2).direct(), workload.batch(np.arange(8))[0]
    w, e = workload.split(2)[0].start(0), np.random.default_rng(0).standard_normal((8, 10))
    y, saved = direct.forward(w, x)
    g = direct.backward(w, saved, e)
    h = x
    for layer, place, b in zip(workload.split(workload.depth), direct.places, direct.matrices, strict=False):
        h, kept = layer.forward(w[place], h)
        assert np.array_equal(g[place], layer.backward(w[place], kept, e @ b)[1])
    assert np.array_equal(h, y)


def test_the_outputs_of_a_sequence_have_positions():
    import workloads

    text = workloads.find("text")
    shape, positions = outputs(text.build(text.Settings(), np.dtype("float32")))
    assert len(shape) == 2 and shape[0] == positions > 1
    assert outputs(digits()) == ((10,), 1)
