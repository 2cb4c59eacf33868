import pytest

from experiments.viewer.column_codec import unpack
from lessons import movement, timelines

MARK = "algorithm=backup workers=3 backups=1 workload=quadratic learning_rate=0.1 steps=3 jitter=cloud"


def test_a_recorded_timeline_is_what_its_run_gives_again(tmp_path):
    block = movement.timeline(MARK)
    timelines.write(tmp_path, [block])
    assert timelines.find(tmp_path, block) == timelines.make_frame(block)
    header, _ = unpack(timelines.find(tmp_path, block))
    assert header["lanes"][0] == "server 0" and not header["clickable"]


def test_without_timelines_there_is_no_file(tmp_path):
    timelines.write(tmp_path, [movement.timeline(MARK)])
    timelines.write(tmp_path, [])
    assert not list(tmp_path.iterdir()) and timelines.find(tmp_path, movement.timeline(MARK)) is None


def test_a_timeline_that_is_too_long_for_a_text_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(timelines, "LARGEST", 100)
    with pytest.raises(ValueError, match="too many for a text; take fewer steps"):
        timelines.write(tmp_path, [movement.timeline(MARK)])


def test_a_mark_leads_to_the_same_schedule_in_the_workbench():
    assert movement.schedule("interleaved ranks=2 latency=0.5").link == (
        "schedules?schedule_a=interleaved&ranks=2&link_takes=0.5"
    )
