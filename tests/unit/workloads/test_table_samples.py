"""Samples of a table: which rows and columns are used for which label, and what is said of it."""

import numpy as np
import pytest

from tests.quotes import quote
from workloads.csv_idx import from_csv
from workloads.table_samples import Gaps, choose, is_estimated, samples


def table(header, rows):
    lines = [",".join(map(str, row)) for row in rows]
    return from_csv("\n".join([header, *lines] if header else lines).encode(), "x.csv")


def people(rows=40):
    """Ages are missing in every fourth row, and the port, a word, in every third."""
    return table(
        "survived,sex,age,port,city",
        [
            (n % 2, ("male", "female")[n % 3 > 0], "" if n % 4 == 0 else 20 + n, "" if n % 3 == 0 else "SC"[n % 2],
             f"city{n % 30}")
            for n in range(rows)
        ],
    )  # fmt: skip


def test_words_become_a_column_each_and_a_missing_word_is_one():
    made = samples(people(), "survived", missing="mean")
    assert made.x.shape == (40, 2 + 1 + 3)
    assert "sex became 2 columns, port became 3 columns" in made.features
    np.testing.assert_array_equal(made.x[:, :2].sum(1), 1)
    assert made.x[0, :2].tolist() == [0, 1] and made.x[1, :2].tolist() == [1, 0]  # female, male


def test_a_column_of_more_than_twenty_words_is_left_out_and_named():
    assert (
        "left out, because they have more than 20 words: city."
        in samples(people(), "survived", missing="mean").features
    )


def test_cells_that_are_missing_are_asked_for_only_in_columns_that_are_learned_from():
    with pytest.raises(Gaps, match=quote("line 2: age … 10 such cells … 10 of 40 rows")) as asked:
        samples(people(), "survived")
    assert asked.value.rows == 10
    worded = table("word,class", [("?" if n % 5 else "a", n % 2) for n in range(20)])
    assert len(samples(worded, "class").x) == 20


def test_numbers_that_are_missing_in_rows_without_a_label_are_not_asked_for():
    made = samples(table("a,label", [("" if n < 3 else n, "?" if n < 3 else "pq"[n % 2]) for n in range(20)]), "label")
    assert len(made.x) == 17 and made.notes == ("3 rows without label left out.",)


def test_rows_or_means_repair_what_is_missing_and_say_how_many_cells():
    rows = samples(people(), "survived", missing="rows")
    assert len(rows.x) == 30 and rows.notes == ("10 rows with missing cells left out.",)
    filled = samples(people(), "survived", missing="mean")
    assert len(filled.x) == 40 and np.isnan(filled.x).sum() == 10
    assert filled.notes == ("10 missing cells of age filled with the mean of the column.",)


def test_rows_without_a_label_are_left_out_whether_it_is_a_number_or_a_word():
    by_port, by_age = (samples(people(), label, label == "age", "mean") for label in ("port", "age"))
    assert by_port.classes == ("C", "S") and len(by_port.x) == 26
    assert by_port.notes[0] == "14 rows without port left out."
    assert len(by_age.x) == 30 and not np.isnan(by_age.target).any()


def test_a_number_to_be_estimated_is_no_class_and_words_are_no_number():
    houses = table("rooms,price", [(n % 7, n + 0.5) for n in range(200)])
    with pytest.raises(ValueError, match=quote("price … 200 different values … regression on")):
        samples(houses, "price")
    assert samples(houses, "price", regression=True).target[3] == 3.5
    with pytest.raises(ValueError, match=quote("sex … words … regression off")):
        samples(people(), "sex", regression=True, missing="mean")


def test_classes_that_are_numbers_have_all_their_digits():
    days = table("day,x", [(day, n % 5) for n, day in enumerate([20240101, 20240102, 0.1, -1] * 3)])
    assert samples(days, "day").classes == ("-1", "0.1", "20240101", "20240102")


def test_columns_of_many_words_alone_predict_nothing():
    names = table("name,class", [(f"n{n}", n % 2) for n in range(60)])
    with pytest.raises(ValueError, match=quote("no column … class")):
        samples(names, "class")


@pytest.mark.parametrize(
    ("values", "estimated"),
    [
        (lambda n: n % 2, False),
        (lambda n: 3 + n % 6, False),
        (lambda n: 1 + n % 29, True),  # rings, say
        (lambda n: 0.5 * (n % 4), True),
        (lambda n: "ab"[n % 2], False),
    ],
)
def test_a_label_of_fractions_or_many_numbers_is_estimated_and_others_are_classes(values, estimated):
    assert is_estimated(table("x,y", [(n % 3, values(n)) for n in range(100)]), "y") == estimated


def test_a_column_called_label_is_one_of_classes():
    assert not is_estimated(table("label,x", [(n % 62, n % 3) for n in range(200)]), "label")


@pytest.mark.parametrize(
    ("header", "row", "chosen"),
    [
        ("income,age,price", lambda n: (n / 7, n % 50, n / 3), ("price", "the last column")),
        ("label,pixel,other", lambda n: (n % 10, n % 256, n % 3), ("label", "by its name")),
        ("", lambda n: (1 + n % 3, n / 7, 278 + n), ("column 1", "since it numbers classes")),
        ("", lambda n: ("MFI"[n % 3], n / 7, n % 29), ("column 3", "the last column")),
        ("", lambda n: (n / 9, n / 7, "xy"[n % 2]), ("column 3", "the last column")),
    ],
)
def test_without_a_label_one_is_chosen_for_a_reason_that_is_said(header, row, chosen):
    name, why = choose(table(header, [row(n) for n in range(200)]))
    assert name == chosen[0] and why.startswith(chosen[1])
