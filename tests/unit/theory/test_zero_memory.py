import pytest

from theory.zero_memory import RECIPES, nbytes


def test_seven_and_a_half_billion_parameters_on_64_ranks_take_the_papers_gigabytes():
    stages = [nbytes(7.5e9, 64, stage, RECIPES["mixed Adam"]) / 1e9 for stage in range(4)]
    assert stages == pytest.approx([120, 31.40625, 16.640625, 1.875])


def test_the_recipes_take_so_many_bytes_of_each_parameter():
    whole = {name: nbytes(1, 1, 0, recipe) for name, recipe in RECIPES.items()}
    assert whole == {
        "float32 SGD": 8,
        "float32 momentum": 12,
        "float32 Adam": 16,
        "mixed momentum": 12,
        "mixed Adam": 16,
        "mixed Adam, float32 gradients": 18,
    }


@pytest.mark.parametrize(("stage", "times"), [(1, 4), (2, 8), (3, 10**9)])
def test_with_many_ranks_memory_falls_to_a_quarter_an_eighth_and_without_end(stage, times):
    mixed = RECIPES["mixed Adam"]
    assert nbytes(1, 10**9, 0, mixed) / nbytes(1, 10**9, stage, mixed) == pytest.approx(times, rel=1e-6)


def test_there_is_no_fourth_stage():
    with pytest.raises(ValueError, match="stages 0 to 3, not 4"):
        nbytes(1, 1, 4, RECIPES["mixed Adam"])
