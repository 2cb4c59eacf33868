"""Predictions against published throughput, and against those who would predict it without a model."""

import numpy as np
import pytest

from tests.planner_fit import fit
from theory.planner.constants import FITTED, HIGHEST, LOWEST, STANDARD_ERRORS
from theory.planner.published import constant, errors, leave_out, nearest, predict, table
from theory.planner.step_time import utilisation

ROWS = table()


def refitted(rows, known):
    return predict(rows, fit(known).constants)


def split(predicted_rows):
    """Fit to the other rows, and return the errors on these."""
    rows = ROWS.take(predicted_rows)
    return errors(rows, refitted(rows, ROWS.take(~predicted_rows)))


def test_of_144_rows_the_median_error_is_at_most_3_percent_and_nine_of_ten_are_within_8():
    found = errors(ROWS, predict(ROWS))
    assert found.rows == 144
    assert found.median <= 0.03 and found.ninth <= 0.08 and found.within >= 0.95 and found.correlation > 0.9


def test_no_source_has_a_median_error_above_9_percent_and_no_gpu_a_bias_above_2():
    predicted = predict(ROWS)
    for source in set(ROWS.sources):
        mine = ROWS.sources == source
        assert errors(ROWS.take(mine), predicted[mine]).median <= 0.09
    for name in set(ROWS.names):
        mine = ROWS.names == name
        assert abs(errors(ROWS.take(mine), predicted[mine]).bias) <= 0.02


def test_at_most_twelve_constants_are_fitted_none_of_them_on_a_bound():
    assert len(FITTED) <= 12
    assert all(low < value < high for low, value, high in zip(LOWEST, FITTED, HIGHEST, strict=True))
    assert all(0 < error < value for error, value in zip(STANDARD_ERRORS, FITTED, strict=True))


def test_the_constants_are_where_the_fit_ends():
    """No constant can move by a tenth without a larger robust error."""

    def cost(constants):
        off = np.log(predict(ROWS, constants) / ROWS.rates) / 0.03
        return float(np.sum(2 * (np.sqrt(1 + off**2) - 1)))

    least = cost(FITTED)
    for name in FITTED._fields:
        for factor in (0.9, 1.1):
            assert cost(FITTED._replace(**{name: factor * getattr(FITTED, name)})) > least, name


def test_llm_foundry_and_nemo_count_the_flops_that_the_language_model_counts():
    model, rates = ROWS.setup.model, ROWS.rates
    mpt = np.char.startswith(ROWS.models, "mpt")
    theirs = 6 * model.parameters + 12 * model.layers * model.width * model.sequence
    peak = np.where(ROWS.names == "H100", 989e12, 312e12)
    assert np.abs(100 * rates * theirs / peak - ROWS.told)[mpt].max() < 0.15
    nemo = np.char.startswith(ROWS.sources, "NeMo")
    assert nemo.sum() == 7 and np.abs(utilisation(ROWS.setup, rates)[nemo] * 1978.9 / ROWS.flops[nemo] - 1).max() < 1e-3


def test_a_constant_utilisation_is_three_times_as_far_off():
    null = errors(ROWS, leave_out(ROWS, ROWS.models, constant))
    assert null.ninth > 3 * errors(ROWS, predict(ROWS)).ninth


def test_rows_that_contradict_their_neighbours_are_kept():
    assert ROWS.inconsistent.sum() == 5


@pytest.mark.slow
def test_refitting_from_the_start_reproduces_the_constants_within_1_percent():
    found = fit(ROWS)
    assert np.array(found.constants) == pytest.approx(np.array(FITTED), rel=0.01)
    assert np.array(found.standard_errors) == pytest.approx(np.array(STANDARD_ERRORS), rel=0.2)


@pytest.mark.slow
def test_a_model_that_the_fit_has_not_seen_is_predicted_better_than_by_its_nearest_neighbour():
    ours = errors(ROWS, leave_out(ROWS, ROWS.models, refitted))
    null = errors(ROWS, leave_out(ROWS, ROWS.models, nearest))
    assert ours.median <= 0.04 and ours.ninth <= 0.10 and ours.ninth < 0.75 * null.ninth


@pytest.mark.slow
def test_a_fit_to_64_gpus_predicts_128_and_more():
    found = split(ROWS.gpus >= 128)
    assert found.median <= 0.03 and found.ninth <= 0.10


@pytest.mark.slow
def test_a_fit_to_short_sequences_predicts_long_ones_and_one_to_a_node_several():
    long = split(ROWS.setup.model.sequence >= 16384)
    assert long.median <= 0.03 and long.ninth <= 0.10
    assert split(ROWS.gpus > 8).median <= 0.04
