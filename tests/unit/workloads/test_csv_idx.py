"""Tables out of files, and what is said of files that are none."""

import gzip
import re

import numpy as np
import pytest

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


def holes(text):
    """The table with an empty cell, a question mark and a word where numbers are, in three rows, and one label less."""
    lines = text.splitlines()
    for row, cell, bad in ((2, 0, ""), (4, 1, "?"), (6, 0, "n/a"), (8, 2, "?")):
        cells = lines[row].split(",")
        cells[cell] = bad
        lines[row] = ",".join(cells)
    return "\n".join(lines)


DAMAGED = "size,kind,sold\n" + "\n".join(f"{n}.5,{n % 3},{'yes' if n % 2 else 'no'}" for n in range(20))


def test_what_is_missing_is_counted_and_repaired_only_if_one_says_how():
    text = holes(DAMAGED)
    with pytest.raises(csv_idx.Damaged, match="line 3: size is empty; 4 such cells are in 4 of 20 rows") as refused:
        csv(text)
    assert is_a_sentence(refused.value) and "leave out 4 rows, or take the mean" in str(refused.value)
    assert refused.value.rows == 4
    left = from_csv(text.encode(), "x.csv", "rows")
    assert len(left.cells) == 16 and left.notes == ("table: 4 rows with missing cells left out.",)
    filled = from_csv(text.encode(), "x.csv", "mean")
    assert len(filled.cells) == 19  # a row without a label is left out
    assert filled.notes == (
        "table: 1 row with missing cells left out, 3 missing cells filled with the mean of the column.",
    )
    whole = csv(DAMAGED).cells
    good = [n for n in range(20) if n not in (1, 5)]
    assert filled.cells[1, 0] == pytest.approx(whole[good, 0].mean())
    np.testing.assert_array_equal(filled.cells[8:], whole[9:])  # row 7 has no label


@pytest.mark.parametrize("huge", ["1.7976931348623157e308", "-1e300"])
def test_a_number_that_no_mean_can_be_taken_of_stands_for_one_that_is_missing(huge):
    text = DAMAGED.replace("\n3.5,", f"\n{huge},")
    with pytest.raises(csv_idx.Damaged, match=f"line 5: size is '{huge}' there, and mostly numbers elsewhere"):
        csv(text)
    assert from_csv(text.encode(), "x.csv", "mean").cells[:, 0].max() == 19.5


def test_a_missing_word_becomes_the_commonest_of_its_column():
    text = "kind,a\n" + "\n".join(f"{word},{n % 2}" for n, word in enumerate(["cat", "dog", "?", "dog"] * 4))
    made = from_csv(text.encode(), "x.csv", "mean")
    assert made.words == {"kind": ("cat", "dog")} and made.cells[2, 0] == 1


@pytest.mark.parametrize("header", ["size;kind;sold\n", ""])
def test_decimal_commas_between_semicolons_are_read_and_said(header):
    text = header + ROWS.replace(",", ";").replace(".", ",")
    made = csv(text)
    np.testing.assert_array_equal(made.cells, csv(ROWS).cells)
    assert made.notes == ("table: decimal commas were read as decimal points.",)
    assert made.names[0] in csv(text.replace("3,5;", "3.5;")).words  # a comma that may part thousands is no number


@pytest.mark.parametrize("name", ["mass; kg", "a;b;c", 'say ""a;b"" twice'])
def test_what_stands_in_quotes_parts_no_cells(name):
    text = "\n".join(f"{n},{n % 2}" for n in range(12))
    assert csv(f'"{name}",sold\n{text}').names == (name.replace('""', '"'), "sold")


def test_a_table_is_called_as_its_file():
    assert from_csv(ROWS.encode(), "C:\\data\\Messy Data (1).csv").file == "messy_data_1"


def test_an_empty_column_is_left_out_and_that_is_said():
    made = csv("a,b,c\n" + "\n".join(f"{n},{n % 2}," for n in range(12)))
    assert made.names == ("a", "b") and made.notes == ("table: c was left out, it is empty.",)


def test_a_column_of_many_different_words_is_left_out_and_that_is_said():
    table = csv("name,a,b\n" + "\n".join(f"n{n},{n},{n % 2}" for n in range(150)))
    assert table.names == ("a", "b") and table.notes == (
        "table: name was left out, it has more than 100 different words.",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,b\n", "has 0 rows; a table needs at least 10"),
        (",\n,\n", "has no cell with anything in it"),
        ("a,b\n1,2\n", "has 1 row; a table needs at least 10"),
        ("a,b\n" + "1,2\n" * 9, "has 9 rows; a table needs at least 10"),
        ("1,2\n" * 9, "has 9 rows; a table needs at least 10"),
        ("a\n1\n2\n", "has 1 column; 2 to 2,000 are read"),
        ("a,b\n" + "1,2\n" * 12 + "3\n", "line 14: 1 cells where the first row has 2"),
        ("a,b\n" + "1,2\n" * 12 + "3,\n", "line 14: b is empty"),
        ("a,b\n" + "1,2\n" * 12 + "3,x\n", "line 14: b is 'x' there, and mostly numbers elsewhere"),
        ("a,b\n" + "1,2\n" * 12 + "3,nan\n", "line 14: b is 'nan' there"),
        ("a,b\n" + "1,2\n" * 12 + "3,1e999\n", "line 14: b is '1e999' there"),
        ("a,a\n" + "1,2\n" * 12, "two columns that are called 'a'"),
        ("a,b\n" + "1,2\n" * 12 + '"3,4', "line 14: this is no CSV"),
        ("a,b\n" + "1,2\n" * 12 + '3,"4"5\n', "line 14: this is no CSV"),
        ("a,b\n" + "1,2\n" * 12 + "3,1_0\n", "line 14: b is '1_0' there"),
        ("a,b\n\n" + "1,2\n" * 12 + "3\n", "line 15: 1 cells"),
        ("a,b,c\n" + '1,"x\ny",2\n' * 12 + "z,x,2\n", "line 26: a is 'z' there"),
        ("a,b\n" + "1,2\0\n" * 12, "zero bytes"),
        (",".join("a" * 3000) + "\n", "has 3,000 columns"),
    ],
)
def test_a_file_that_is_no_table_says_where_and_why(text, words):
    with pytest.raises(ValueError, match=re.escape(words)) as refused:
        csv(text)
    assert is_a_sentence(refused.value)


def test_a_file_that_is_no_text_or_too_large_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="no text in UTF-8, byte 4 is none"):
        from_csv(b"abcd\xff\xfe", "x.csv")
    monkeypatch.setattr(csv_idx, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match="has 11 bytes; at most 10 are read"):
        from_csv(b"a" * 11, "x.csv")
    monkeypatch.setattr(csv_idx, "MOST_BYTES", 10_000)
    monkeypatch.setattr(csv_idx, "MOST_CELLS", 20)
    with pytest.raises(ValueError, match="too large"):
        csv(ROWS)


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
        ([idx(PIXELS)], "two files, images and labels, and 1 came"),
        ([idx(PIXELS), idx(PIXELS)], "these have 3 and 3"),
        ([idx(PIXELS), idx(LABELS[:12])], "12 labels for 15 images"),
        ([idx(PIXELS[:3]), idx(LABELS[:3])], "3 images; a table needs at least 10"),
        ([idx(PIXELS)[:-1], idx(LABELS)], "299 bytes of data where it announces 15 x 4 x 5"),
        ([b"hello", idx(LABELS)], "begins with 68 65 6c 6c"),
        ([b"", idx(LABELS)], "begins with nothing"),
        ([gzip.compress(idx(PIXELS))[:-9], idx(LABELS)], "cut short"),
        ([b"\x1f\x8b" + b"x" * 50, idx(LABELS)], "cannot be unpacked"),
        ([gzip.compress(b"\0" * 60_000_000), idx(LABELS)], "more than 50,000,000 bytes"),
        ([idx(np.full((12, 2), np.nan, "f4")), idx(LABELS[:12])], "not finite"),
        ([idx(np.full((12, 2), 1e200)), idx(LABELS[:12])], "beyond 1e+100"),
        ([idx(np.zeros((12, 3000), "u1")), idx(LABELS[:12])], "2,000 in a row"),
        ([bytes([0, 0, 8, 3]) + b"\xff" * 12, idx(LABELS)], "announces 4294967295 x 4294967295"),
    ],
)
def test_idx_files_that_do_not_fit_say_why(files, words):
    with pytest.raises(ValueError, match=re.escape(words)) as refused:
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
            assert np.isfinite(made.cells).all() and made.cells.shape[1] == len(made.names)
            read += 1
        except ValueError as error:
            assert is_a_sentence(error), error
    assert 30 < read < 970
