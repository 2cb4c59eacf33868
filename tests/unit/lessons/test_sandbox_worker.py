"""Frames between grader and sandbox worker: plain values come back equal, and noise is refused."""

import io

import numpy as np
import pytest

from lessons.grading.sandbox_worker import pack, read_frame


def test_a_frame_is_read_as_it_was_packed():
    value = {"a": (1, [2.5, None]), 3: "한국어", "x": [np.arange(6.0).reshape(2, 3), np.zeros((0, 4), "f4")]}
    back = read_frame(io.BytesIO(b"".join(pack(value))).readinto)
    for there, here in zip(value.pop("x"), back.pop("x"), strict=True):
        assert here.dtype == there.dtype and here.shape == there.shape and (here == there).all()
    assert back == value


def test_a_value_that_is_not_plain_is_refused():
    with pytest.raises(TypeError, match="a set cannot be returned"):
        pack([{1, 2}])
    with pytest.raises(TypeError, match="an array of object cannot be returned"):
        pack(np.array([None]))


@pytest.mark.parametrize(
    "noise",
    [
        b"\xff" * 100,
        b"\0\0\0\x05\0\0\0\0hello",
        b"\0\0\0\x02\0\0\0\0{}",
        b"\0\0\0\x21\0\0\0\0" + b'{"array": [0, "O", [1000000000]]}',
        b"\0\0\0\x22\0\0\0\0" + b'{"array": [0, "f8", [1000000000]]}',
        b"\0\0\0\x1a\0\0\0\0" + b'{"array": [-8, "f8", [1]]}',
        b"\0\x01\x86\xa0\0\0\0\0" + b"[" * 100_000,
    ],
)
def test_noise_on_the_channel_is_refused(noise):
    with pytest.raises((ValueError, EOFError)):
        read_frame(io.BytesIO(noise).readinto)
