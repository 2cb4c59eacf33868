"""What the texts show as a timeline is what its run gives."""

import numpy as np
import pytest

import lessons
from experiments.viewer.column_codec import unpack
from lessons import timelines

WORDS = "lanes", "kinds", "look", "saved"  # what a frame says in words


@pytest.mark.parametrize("chapter", lessons.written_chapters(), ids=lambda chapter: chapter.name)
def test_every_timeline_of_a_text_is_recorded_as_its_run_gives_it_now(chapter):
    recorded = timelines.read(chapter.folder)
    assert list(recorded) == [block.experiment.query() for block in chapter.timelines]
    for block in chapter.timelines:
        (was, columns), (now, again) = (
            unpack(one) for one in (timelines.find(chapter.folder, block), timelines.make_frame(block))
        )
        assert [was[words] for words in WORDS] == [now[words] for words in WORDS]
        assert was["seconds"] == pytest.approx(now["seconds"])
        assert list(was) == list(now) and list(columns) == list(again), "the frame of a timeline has changed: write it"
        for part in ("timeline", "messages"):
            (_, one), (_, other) = (unpack(side[part].tobytes()) for side in (columns, again))
            assert list(one) == list(other)
            for name in one:
                np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-9, err_msg=name)
