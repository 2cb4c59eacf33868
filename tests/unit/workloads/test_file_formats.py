"""Files of other formats: each is named, with what to do."""

import io
import json
import zipfile

import numpy as np
import pytest

from workloads.file_formats import refuse, zip_of


def saved(save, *arrays, **named):
    content = io.BytesIO()
    save(content, *arrays, **named)
    return content.getvalue()


def zipped(*names):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return content.getvalue()


ARRAY = np.ones((3, 2))
FILES = {
    "x.npy": (saved(np.save, ARRAY), "a NumPy array", "numpy.savetxt"),
    "xy.npz": (saved(np.savez, x=ARRAY, y=ARRAY), "a NumPy archive (x, y)", 'f["x"], f["y"]'),
    "t.parquet": (b"PAR1\x15\x04", "a Parquet file", 'pandas.read_parquet("t.parquet").to_csv("t.csv"'),
    "t.xlsx": (zipped("[Content_Types].xml", "xl/workbook.xml"), "a spreadsheet", "CSV UTF-8"),
    "t.ods": (zipped("mimetype", "content.xml"), "a spreadsheet", "CSV UTF-8"),
    "t.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1", "a spreadsheet", "CSV UTF-8"),
    "t.zip": (zipped("data/train.csv", "readme"), "a zip with train.csv in it", "unpack it, and add train.csv"),
    "t.h5": (b"\x89HDF\r\n", "an HDF5 file", "pandas.read_hdf"),
    "t.mat": (b"MATLAB 5.0 MAT-file", "a MATLAB file", "writematrix"),
    "t.pkl": (b"\x80\x04\x95", "a pickle", "pandas.read_pickle"),
    "t.pt": (zipped("t/data.pkl", "t/version"), "a file of torch.save", "numpy.savetxt"),
    "t.json": (json.dumps([{"a": 1}]).encode(), "JSON", 'read_json("t.json").to_csv'),
    "t.jsonl": (b'{"a": 1}\n{"a": 2}\n', "JSON", "lines=True"),
    "t.arff": (b"@RELATION iris\n@DATA\n1,2\n", "an ARFF file", "column names in the first line"),
    "t.png": (b"\x89PNG\r\n", "an image", "a row of numbers for each sample"),
    "t{0}.npy": (saved(np.save, ARRAY), "a NumPy array", 'numpy.load("t{0}.npy")'),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_format_is_named_with_what_to_do(name):
    content, what, remedy = FILES[name]
    with pytest.raises(ValueError) as refused:
        refuse(content, name)
    assert str(refused.value).startswith(f"{name} is {what}; ") and remedy in str(refused.value)


@pytest.mark.parametrize("text", [b"a,b\n1,2\n", b"[a],b\n1,2\n", b"{1},2\n", b"", b"\xff\xfea"])
def test_a_text_that_may_be_a_table_is_left_alone(text):
    refuse(text, "x.csv")


def test_a_zip_of_a_run_and_one_that_cannot_be_opened_are_left_alone():
    assert zip_of(zipped("run.json", "parameters.npy"), "run.zip") is None
    assert zip_of(b"PK\x03\x04rubbish", "x.zip") is None


def test_the_code_that_is_given_makes_a_table_of_an_array(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x.npy", "xy.npz"):
        (tmp_path / name).write_bytes(FILES[name][0])
        with pytest.raises(ValueError) as refused:
            refuse(FILES[name][0], name)
        exec(str(refused.value).partition("NumPy: ")[2].removesuffix("."), {"numpy": np})  # what the sentence says
    assert np.loadtxt("x.csv", delimiter=",").shape == (3, 2)
    assert np.loadtxt("xy.csv", delimiter=",").shape == (3, 4)
