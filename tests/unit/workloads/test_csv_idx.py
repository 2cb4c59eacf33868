"""Tables out of files, and what is said of files that are none."""

import gzip

import numpy as np
import pytest

from tests.quotes import quote
from workloads import csv_idx
from workloads.csv_idx import from_csv, from_idx

ROWS = "\n".join(f"{n}.5,{n % 3},{'yes' if n % 2 else 'no'}" for n in range(12))


def csv(text):
    return from_csv(text.encode(), "x.csv")


def idx(array):
    kind = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}[array.dtype.str[1:]]
    shape = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, kind, array.ndim]) + shape + array.astype(array.dtype.newbyteorder(">")).tobytes()


PIXELS = np.arange(15 * 4 * 5, dtype=np.uint8).reshape(15, 4, 5)
LABELS = np.arange(15, dtype=np.uint8) % 3


def is_a_sentence(error):
    text = str(error)
    return "\n" not in text and 10 < len(text) < 400 and text[-1] in ".?"


def test_a_table_has_names_numbers_and_words():
    table = csv("size,kind,sold\n" + ROWS)
    assert table.names == ("size", "kind", "sold") and table.cells.shape == (12, 3)
    assert table.words == {"sold": ("no", "yes")}
    np.testing.assert_array_equal(table.cells[:4], [[0.5, 0, 0], [1.5, 1, 1], [2.5, 2, 0], [3.5, 0, 1]])


def test_without_names_columns_are_numbered():
    assert csv(ROWS).names == ("column 1", "column 2", "column 3")
    assert len(csv(ROWS).cells) == 12


def quoted(text):
    return "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in text.splitlines())


CHANGES = {
    "semicolons": lambda text: text.replace(",", ";"),
    "written for Excel": lambda text: "sep=;\r\n" + text.replace(",", ";"),
    "tabs": lambda text: text.replace(",", "\t"),
    "Windows": lambda text: text.replace("\n", "\r\n"),
    "byte order mark": lambda text: "\ufeff" + text,
    "blank lines": lambda text: text + "\n\n",
    "spaces": lambda text: text.replace(",", ", "),
    "quotes": quoted,
    "quotes and spaces": lambda text: quoted(text).replace(",", ", "),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_tables_are_read_as_programs_write_them(change):
    text = "size,kind,sold\n" + ROWS
    assert csv(change(text)).names == csv(text).names
    np.testing.assert_array_equal(csv(change(text)).cells, csv(text).cells)


@pytest.mark.parametrize("header", ["size;kind;sold\n", ""])
def test_decimal_commas_between_semicolons_are_read_and_said(header):
    text = header + ROWS.replace(",", ";").replace(".", ",")
    made = csv(text)
    np.testing.assert_array_equal(made.cells, csv(ROWS).cells)
    assert made.notes == ("decimal commas were read as decimal points.",)
    assert made.names[0] in csv(text.replace("3,5;", "3.5;")).words  # a comma that may part thousands is no number


@pytest.mark.parametrize("name", ["mass; kg", "a;b;c", 'say ""a;b"" twice'])
def test_what_stands_in_quotes_parts_no_cells(name):
    text = "\n".join(f"{n},{n % 2}" for n in range(12))
    assert csv(f'"{name}",sold\n{text}').names == (name.replace('""', '"'), "sold")


def test_a_table_is_called_as_its_file():
    assert from_csv(ROWS.encode(), "C:\\data\\Messy Data (1).csv").file == "messy_data_1"


def test_an_empty_column_is_left_out_and_that_is_said():
    made = csv("a,b,c\n" + "\n".join(f"{n},{n % 2}," for n in range(12)))
    assert made.names == ("a", "b") and made.notes == ("c was left out: it is empty.",)


def test_a_column_of_many_different_words_is_left_out_and_that_is_said():
    table = csv("name,a,b\n" + "\n".join(f"n{n},{n},{n % 2}" for n in range(150)))
    assert table.names == ("a", "b")
    assert table.notes == ("name was left out: it has more than 100 different words; one is 'n0'.",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,b\n", "0 rows … at least 10"),
        (",\n,\n", "only empty cells"),
        ("a,b\n1,2\n", "1 row … at least 10"),
        ("a,b\n" + "1,2\n" * 9, "9 rows … at least 10"),
        ("1,2\n" * 9, "9 rows … at least 10"),
        ("a\n1\n2\n", "1 column … 2 to 2,000"),
        ("a,b\n" + "1,2\n" * 12 + "3\n", "line 14: 1 … first row has 2"),
        ("a,a\n" + "1,2\n" * 12, "two columns … 'a'"),
        ("a,b\n" + "1,2\n" * 12 + '"3,4', "line 14 … CSV"),
        ("a,b\n" + "1,2\n" * 12 + '3,"4"5\n', "line 14 … CSV"),
        ("a,b\n\n" + "1,2\n" * 12 + "3\n", "line 15: 1 cell, but"),
        ("a,b\n" + "1,2\0\n" * 12, "zero bytes"),
        (",".join("a" * 3000) + "\n", "has 3,000 columns"),
    ],
)
def test_a_file_that_is_no_table_says_where_and_why(text, words):
    with pytest.raises(ValueError, match=quote(words)) as refused:
        csv(text)
    assert is_a_sentence(refused.value)


def test_a_file_that_is_no_text_or_too_large_is_refused(monkeypatch):
    with pytest.raises(ValueError, match=quote("UTF-8 … position 4")):
        from_csv(b"abcd\xff\xfe", "x.csv")
    monkeypatch.setattr(csv_idx, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match=quote("11 bytes … at most 10")):
        from_csv(b"a" * 11, "x.csv")
    monkeypatch.setattr(csv_idx, "MOST_BYTES", 10_000)
    monkeypatch.setattr(csv_idx, "MOST_CELLS", 20)
    with pytest.raises(ValueError, match="too large"):
        csv(ROWS)


@pytest.mark.parametrize(
    ("last", "gap"),
    [
        ("3,", "b is empty"),
        ("3,x", "b is 'x' "),
        ("3,nan", "b is 'nan' there"),
        ("3,1e999", "b is '1e999' there"),
        ("3,-1e300", "b is '-1e300' there"),  # no mean can be taken of such numbers
        ("3,1_0", "b is '1_0' there"),
    ],
)
def test_a_cell_without_a_number_is_kept_with_its_line(last, gap):
    made = csv("a,b\n" + "1,2\n" * 12 + last)
    assert made.gaps["b"].startswith(f"line 14: {gap}") and np.isnan(made.cells[12, 1])
    assert csv("a,b,c\n" + '1,"x\ny",2\n' * 12 + "z,x,2\n").gaps["a"].startswith("line 26: a is 'z' there")


BLANKS = "\n".join(
    f'{2 * n}.0   {n % 5}   {"?" if n == 4 else n % 7 * 10}.      {n % 3}\t"car number {n % 4}"' for n in range(20)
)


def test_a_table_between_blanks_is_read_as_one_between_commas():
    commas = "\n".join(
        f'{2 * n}.0,{n % 5},{"?" if n == 4 else n % 7 * 10}.,{n % 3},"car number {n % 4}"' for n in range(20)
    )
    for text in (BLANKS, BLANKS.replace("\n", "\n  "), "a b c d e\n" + BLANKS):
        made = csv(text)
        np.testing.assert_array_equal(made.cells, csv(commas).cells)
        assert [*made.words.values()] == [*csv(commas).words.values()]
    assert csv("a b\n" + "1 2\n" * 12).names == ("a", "b")


def test_blanks_within_cells_part_none_where_tabs_do():
    made = csv("first name\tsold\n" + "\n".join(f"New York {n % 3}\t{n % 2}" for n in range(12)))
    assert made.names == ("first name", "sold") and made.words["first name"][0] == "New York 0"


def test_rows_between_blanks_of_unequal_length_are_named_by_their_line():
    with pytest.raises(ValueError, match=quote("line 13: 3 … first row has 2")):
        csv("1 2\n" * 12 + "1 2 3\n")


@pytest.mark.parametrize("header", [",a,b", "Unnamed: 0,a,b", "index,a,b", "PassengerId,a,b", ""])
@pytest.mark.parametrize("first", [0, 1])
def test_a_first_column_that_only_counts_the_rows_is_left_out_and_that_is_said(header, first):
    made = csv(header + "\n" * bool(header) + "\n".join(f"{n + first},{n % 3},{n % 2}" for n in range(12)))
    assert len(made.names) == 2 and "only counts the rows" in made.notes[0]


def test_a_first_column_that_has_a_name_of_its_own_or_is_the_only_one_to_learn_from_stays():
    assert csv("time,a,b\n" + "\n".join(f"{n},{n % 3},{n % 2}" for n in range(12))).names == ("time", "a", "b")
    assert len(csv("\n".join(f"{n},{n % 2}" for n in range(12))).names) == 2


def test_points_between_thousands_go_with_decimal_commas():
    made = csv("a;b\n" + "\n".join(f"1.23{n % 10},50;{n},5" for n in range(12)))
    assert made.cells[:2].tolist() == [[1230.5, 0.5], [1231.5, 1.5]]


def test_a_table_of_words_alone_has_a_header_only_if_its_words_do_not_recur():
    letters = "\n".join(f"{'pe'[n % 2]},{'xyb'[n % 3]},{'st'[n % 2]}" for n in range(12))
    assert csv(letters).names == ("column 1", "column 2", "column 3") and len(csv(letters).cells) == 12
    assert csv("class,cap,odour\n" + letters).names == ("class", "cap", "odour")


def test_a_missing_cell_in_the_first_row_makes_no_header():
    assert len(csv("?,1,x\n" + "2,3,y\n" * 12).cells) == 13


def test_a_file_whose_columns_are_all_left_out_says_why():
    with pytest.raises(ValueError, match=quote("0 usable columns … label … a was left out")) as error:
        csv("a,b\n" + "nan,1e400\n" * 12)
    assert "no cell is a number" in str(error.value)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_images_and_labels_come_in_two_idx_files_in_any_order(packed, order):
    files = [idx(PIXELS), idx(LABELS)][::order]
    table = from_idx([gzip.compress(file) for file in files] if packed else files, "two")
    assert table.shape == (1, 4, 5) and table.names[0] == "pixel 0" and table.names[-1] == "label"
    np.testing.assert_array_equal(table.cells, np.column_stack([PIXELS.reshape(15, -1), LABELS]))


@pytest.mark.parametrize("kind", ["u1", "i1", "i2", "i4", "f4", "f8"])
def test_idx_of_any_type_is_read(kind):
    rows = (np.arange(60).reshape(20, 3) - 7 * (kind[0] != "u")).astype(kind)
    assert from_idx([idx(rows), idx(np.arange(20, dtype="u1") % 2)], "two").cells[5, 0] == rows[5, 0]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([idx(PIXELS)], "images and labels … 1"),
        ([idx(PIXELS), idx(PIXELS)], "these have 3 and 3"),
        ([idx(PIXELS), idx(LABELS[:12])], "12 labels for 15 images"),
        ([idx(PIXELS[:3]), idx(LABELS[:3])], "3 images … at least 10"),
        ([idx(PIXELS)[:-1], idx(LABELS)], "299 bytes … 15 x 4 x 5"),
        ([b"hello", idx(LABELS)], "begins with 68 65 6c 6c"),
        ([b"", idx(LABELS)], "begins with nothing"),
        ([gzip.compress(idx(PIXELS))[:-9], idx(LABELS)], "cut short"),
        ([b"\x1f\x8b" + b"x" * 50, idx(LABELS)], "cannot be unpacked"),
        ([gzip.compress(b"\0" * 60_000_000), idx(LABELS)], "more than 50,000,000 bytes"),
        ([idx(np.full((12, 2), np.nan, "f4")), idx(LABELS[:12])], "infinite, NaN or beyond"),
        ([idx(np.full((12, 2), 1e200)), idx(LABELS[:12])], "beyond 1e+100"),
        ([idx(np.zeros((12, 3000), "u1")), idx(LABELS[:12])], "2,000 per row"),
        ([bytes([0, 0, 8, 3]) + b"\xff" * 12, idx(LABELS)], "announces 4294967295 x 4294967295"),
    ],
)
def test_idx_files_that_do_not_fit_say_why(files, words):
    with pytest.raises(ValueError, match=quote(words)) as refused:
        from_idx(files, "two")
    assert is_a_sentence(refused.value)


def test_a_thousand_damaged_files_are_tables_or_one_sentence():
    draw = np.random.default_rng(0)
    good = ["size,kind,sold\n" + ROWS, ROWS, ROWS.replace(",", ";")]
    marks = [b",", b"\n", b'"', b";", b"\0", b"\xff", b"nan", b"-", b"1e400", b"\t", "é".encode(), b"__", b" ", b""]
    read = 0
    for case in range(1000):
        content = (
            bytearray(good[case % 3].encode()) if case % 4 else bytearray([idx(PIXELS), idx(LABELS)][case % 8 // 4])
        )
        for _ in range(draw.integers(1, 4)):
            a = int(draw.integers(0, len(content)))
            content[a : a + int(draw.integers(0, 9))] = marks[draw.integers(len(marks))]
        try:
            made = from_csv(bytes(content), "x") if case % 4 else from_idx([bytes(content), idx(LABELS)], "x")
            assert not np.isinf(made.cells).any() and made.cells.shape[1] == len(made.names)
            assert {made.names[n] for n in np.flatnonzero(np.isnan(made.cells).any(0))} == {*made.gaps}
            read += 1
        except ValueError as error:
            assert is_a_sentence(error), error
    assert 30 < read < 970
