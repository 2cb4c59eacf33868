"""MNIST: the real files are read, and every way to be damaged is told in one sentence."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

import kernels
from workloads import mnist
from workloads.batches import Batches

IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def idx(array: np.ndarray) -> bytes:
    """An IDX file of unsigned bytes."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path) -> Path:
    """Thirty made-up test images in the format of MNIST."""
    rng = np.random.default_rng(0)
    (tmp_path / IMAGES).write_bytes(idx(rng.integers(0, 256, (1030, 28, 28))))
    (tmp_path / LABELS).write_bytes(idx(rng.integers(0, 10, 1030)))
    return tmp_path


@pytest.fixture
def real() -> str:
    """The folder of the real files."""
    near = Path(__file__).parents[3].parent / "shared" / "data" / "mnist"
    where = os.environ.get("LOCKSTEP_MNIST") or str(near)
    if not mnist.find(Path(where), IMAGES):
        pytest.skip(f"no MNIST in {where}; set LOCKSTEP_MNIST to a folder that has it")
    return where


def build(folder, **knobs):
    return mnist.build(mnist.Settings(folder=str(folder), **knobs))


def test_the_real_images_are_read_and_learned(real):
    workload = build(real)
    x, target = workload.held_out
    assert x.shape[1:] == (784,)
    assert (x.min(), x.max()) == (0, 1)
    assert len(np.unique(target)) == 10
    w, batches = workload.start(0), Batches(workload.samples, 32)
    for _ in range(300):
        _, g = workload.gradient(w, workload.batch(next(batches)))
        kernels.sgd(w, g, 0.2)
    assert workload.evaluate(w).accuracy > 0.85


def test_the_real_test_images_are_the_published_ones(real):
    images, labels = mnist.pair(Path(real), "t10k")
    assert images.shape == (10000, 28, 28)
    assert labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert np.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_with_the_test_files_alone_a_thousand_are_held_out_and_that_is_said(folder):
    workload = build(folder)
    assert (workload.samples, len(workload.held_out[0])) == (30, 1000)
    assert "only the t10k files" in workload.notes[0]


def test_with_all_files_the_test_images_are_held_out(folder):
    rng = np.random.default_rng(1)
    (folder / "train-images-idx3-ubyte").write_bytes(idx(rng.integers(0, 256, (50, 28, 28))))
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(rng.integers(0, 10, 50)))
    workload = build(folder)
    assert (workload.samples, len(workload.held_out[0]), workload.notes) == (50, 1030, ())


def test_gzipped_or_not_the_images_are_the_same(folder):
    plain = build(folder).x
    for name in (IMAGES, LABELS):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
        (folder / name).unlink()
    np.testing.assert_array_equal(build(folder).x, plain)


def test_a_cnn_gets_its_images_in_two_dimensions(folder):
    assert build(folder, model="cnn").x.shape == (30, 1, 28, 28)


def test_the_folder_may_come_from_the_environment(folder, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_MNIST", str(folder))
    assert build("").samples == 30


def damaged(name, change):
    def damage(folder):
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return damage


def zipped(cut):
    def damage(folder):
        content = gzip.compress((folder / IMAGES).read_bytes())
        (folder / IMAGES).unlink()
        (folder / f"{IMAGES}.gz").write_bytes(cut(content))

    return damage


def zeroed(at):
    return lambda content: content[:at] + bytes(40) + content[at + 40 :]


DAMAGES = {
    "images missing": (lambda f: (f / IMAGES).unlink(), rf"no {IMAGES} or {IMAGES}.gz .* \(found {LABELS}\)"),
    "labels missing": (lambda f: (f / LABELS).unlink(), rf"no {LABELS} or {LABELS}.gz .* \(found {IMAGES}\)"),
    "truncated": (damaged(IMAGES, lambda c: c[:-1]), r"807519 bytes .*1030 x 28 x 28"),
    "too long": (damaged(LABELS, lambda c: c + b"x"), r"1031 bytes .*1030"),
    "header alone": (damaged(IMAGES, lambda c: c[:6]), r"0 bytes .*announces"),
    "empty": (damaged(IMAGES, lambda c: b""), "begins with nothing"),
    "a web page": (damaged(IMAGES, lambda c: b"<!DOCTYPE html>"), r"3c 21 44 4f.*00000803"),
    "labels for images": (damaged(IMAGES, lambda c: idx(np.zeros(9))), r"00 00 08 01.*00000803"),
    "absurd counts": (damaged(LABELS, lambda c: c[:4] + b"\xff" * 4 + c[8:]), "announces 4294967295"),
    "no images": (damaged(IMAGES, lambda c: idx(np.zeros((0, 28, 28)))), r"0 bytes .* 0 x 28"),
    "fewer labels": (damaged(LABELS, lambda c: idx(np.zeros(7))), "has 7 labels for 1030 images"),
    "no digits": (damaged(LABELS, lambda c: c[:-1] + b"\x0a"), r"label 10"),
    "other pixels": (damaged(IMAGES, lambda c: idx(np.zeros((1030, 8, 8)))), r"8x8 .*28x28"),
    "gzip truncated": (zipped(lambda c: c[: len(c) // 2]), "Compressed file ended"),
    "gzip scrambled": (zipped(zeroed(1000)), "cannot be read"),
    "gzip header alone": (zipped(lambda c: c[:5]), "cannot be read"),
}


@pytest.mark.parametrize("damage, found", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_named_with_what_was_found_and_where_to_get_it(folder, damage, found):
    damage(folder)
    with pytest.raises(ValueError, match=found) as refusal:
        build(folder)
    sentence = str(refusal.value)
    assert "-ubyte" in sentence and str(folder) in sentence and "\n" not in sentence
    assert mnist.MIRROR in sentence or "instead of 28x28" in sentence


def test_a_missing_folder_is_told_with_what_to_set(tmp_path):
    with pytest.raises(ValueError, match=r"folder .*not exist.*https.*LOCKSTEP_MNIST"):
        build(tmp_path / "nowhere")


def test_half_of_the_training_files_is_a_mistake_and_not_a_small_data_set(folder):
    (folder / "train-images-idx3-ubyte").write_bytes(idx(np.zeros((5, 28, 28))))
    with pytest.raises(ValueError, match="no train-labels-idx1-ubyte"):
        build(folder)
