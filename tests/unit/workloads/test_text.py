"""Text: what is read, how it is cut in samples, that it is learned, and every way in which a file can be wrong."""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import kernels
from tests.quotes import quote
from workloads import text
from workloads.batches import Batches

SMALL = {"context": 8, "width": 8, "heads": 2, "depth": 2}


def build(**knobs):
    return text.build(text.Settings(**{**SMALL, **knobs}))


def entropy(counts) -> float:
    """Nats per outcome."""
    p = np.array(list(counts)) / sum(counts)
    return float(-(p * np.log(p)).sum())


def test_the_text_is_alice_s_and_its_figures_are_those_of_the_docstring():
    alice = text.read(text.ALICE)
    assert alice.startswith("CHAPTER I. Down the Rabbit-Hole\n") and alice.rstrip().endswith("THE END")
    assert " ".join(re.findall(r"^CHAPTER (\w+)\.", alice, re.M)) == "I II III IV V VI VII VIII IX X XI XII"
    one, two = Counter(alice), Counter(pairwise(alice))
    alone, after = entropy(one.values()), entropy(two.values()) - entropy(one.values())
    figures = r"([\d,]+) characters of (\d+) kinds.* characters is ([\d.]+), and ([\d.]+) given the previous"
    told = re.search(figures, " ".join(text.__doc__.split()))
    assert told.groups() == (f"{len(alice):,}", str(len(one)), f"{alone:.2f}", f"{after:.2f}")


def test_targets_are_what_follows_and_samples_are_the_text_in_a_row():
    workload = build()
    characters = "".join(sorted(set(text.read(text.ALICE))))
    beginning = "".join(characters[token] for token in workload.x.ravel()[:31])
    assert beginning == "CHAPTER I. Down the Rabbit-Hole"
    np.testing.assert_array_equal(workload.x.ravel()[1:], workload.target.ravel()[:-1])
    assert workload.x.shape == workload.target.shape and workload.x.shape[1:] == (8,)
    assert workload.x.dtype.kind == "i"


def test_the_last_tenth_is_held_out():
    workload, length = build(), len(text.read(text.ALICE))
    assert length - length // 10 - 8 <= workload.x.size < length - length // 10
    characters = "".join(sorted(set(text.read(text.ALICE))))
    first = "".join(characters[token] for token in workload.held_out[0][0])
    assert text.read(text.ALICE)[length - length // 10 :].startswith(first)


@pytest.mark.parametrize(("most", "tried"), [(10**6, 1804), (8192, 1024), (6000, 750), (16, 2), (1, 1)])
def test_what_a_model_is_tried_on_is_spread_over_all_that_is_held_out(monkeypatch, most, tried):
    monkeypatch.setattr(text, "EVALUATED", 10**6)
    every, targets = build().held_out
    monkeypatch.setattr(text, "EVALUATED", most)
    x, target = build().held_out
    assert len(x) == len(target) == tried
    for place in {0, tried // 2, tried - 1}:
        there = place * (len(every) - 1) // max(1, tried - 1)
        np.testing.assert_array_equal((x[place], target[place]), (every[there], targets[there]))


def test_less_than_the_entropy_of_single_characters_is_learned():
    workload = build(width=16)
    w, batches = workload.start(0), Batches(workload.samples, 64)
    for _ in range(150):
        _, g = workload.gradient(w, workload.batch(next(batches)))
        kernels.sgd(w, g, 0.5)
    shown = np.bincount(workload.held_out[1].ravel())
    assert workload.evaluate(w).loss < entropy(shown[shown > 0]) - 0.1
    assert workload.evaluate(w).accuracy > shown.max() / shown.sum() + 0.03


def test_a_text_of_one_s_own_has_its_own_alphabet(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("ab\u00e9" * 100, encoding="utf-8")
    workload = build(file=str(path))
    assert workload.model.outputs == (8, 3)
    assert workload.x.max() == 2


def test_line_ends_and_a_byte_order_mark_make_no_difference(tmp_path):
    path, other = tmp_path / "plain.txt", tmp_path / "dos.txt"
    path.write_bytes(b"one\ntwo\n" * 30)
    other.write_bytes(b"\xef\xbb\xbf" + b"one\r\ntwo\r\n" * 30)
    np.testing.assert_array_equal(build(file=str(path)).x, build(file=str(other)).x)


MISTAKES = {
    "missing": (lambda path: None, "no file … own.txt … file"),
    "a folder": (lambda path: path.mkdir(), "no file … own.txt"),
    "empty": (lambda path: path.write_bytes(b""), "0 characters … context 8 … at least 90"),
    "too short": (lambda path: path.write_bytes(b"x" * 89), "89 characters … longer text … smaller context"),
    "latin": (lambda path: path.write_bytes(b"caf\xe9 " * 50), "UTF-8 … byte 3 … 0xe9"),
    "too many kinds": (
        lambda path: path.write_text("".join(map(chr, range(0x4E00, 0x4E00 + 1001))), encoding="utf-8"),
        "1,001 different characters … at most 1,000",
    ),
}


@pytest.mark.parametrize("make, found", MISTAKES.values(), ids=MISTAKES)
def test_a_file_that_cannot_be_used_is_told_in_one_sentence(tmp_path, make, found):
    path = tmp_path / "own.txt"
    make(path)
    with pytest.raises(ValueError, match=quote(found)) as refusal:
        build(file=str(path))
    assert str(refusal.value).startswith(f"text: {path}" if "no file" not in found else "text: there is no file")
    assert "\n" not in str(refusal.value)


def test_a_text_that_is_too_long_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "own.txt"
    path.write_bytes(b"x" * 500)
    monkeypatch.setattr(text, "MOST_BYTES", 499)
    with pytest.raises(ValueError, match=r"own.txt .*500 bytes.*at most 499"):
        build(file=str(path))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_may_not_be_read_is_told(tmp_path):
    path = tmp_path / "own.txt"
    path.write_bytes(b"x" * 500)
    path.chmod(0)
    with pytest.raises(ValueError, match=r"own\.txt cannot be read: Permission denied"):
        build(file=str(path))


def test_a_home_that_nobody_has_is_no_file():
    with pytest.raises(ValueError, match="no file ~nobody-of-this-name/x"):
        build(file="~nobody-of-this-name/x")
