from app.comparison.outcomes import sooner


def test_what_comes_later_takes_longer_and_is_not_a_fraction_as_fast():
    assert sooner(5) == "they are 5 times as fast"
    assert sooner(0.2) == "they take 5 times as long"
