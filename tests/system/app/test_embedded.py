"""A picture alone, for slides and frames of other pages."""

import base64
import json
import re
import zlib
from urllib.parse import parse_qsl

import pytest

from app.embed.embedded import answer
from app.session import session
from experiments.specification.experiment import Experiment
from experiments.viewer.column_codec import unpack

EASGD = "algorithm=easgd&workers=3"


def frames(text: str) -> dict:
    """The headers of the canvases of a page, by name."""
    (data,) = re.findall(r"Object\.entries\((\{.*\})\)\) \{", text)
    return {name: unpack(zlib.decompress(base64.b64decode(f)))[0] for name, (_, f) in json.loads(data).items()}


def asked(query: str) -> tuple[str, int]:
    pairs = parse_qsl(query)
    return answer(dict(pairs)["embed"], pairs)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (f"embed=timeline&{EASGD}", ["timeline-0"]),
        (f"embed=curves&axis=seconds&{EASGD}", ["loss", "accuracy"]),
        (f"embed=race&{EASGD}&pin=workers%3D4", ["loss", "timeline-0", "timeline-1"]),
        ("embed=schedule&schedule_a=zb_h1&ranks=3&micro_batches=5", ["schedule"]),
    ],
)
def test_a_picture_is_embedded_with_one_line_that_links_to_the_workbench(query, names, stored):
    for one in (Experiment(algorithm="easgd", workers=3), Experiment()):
        stored(one)
    text, status = asked(query)
    assert status == 200 and list(frames(text)) == names
    (link,) = re.findall(r'<a href="\?([^"]*)"', text)
    assert dict(parse_qsl(link.replace("&amp;", "&"))) == {k: v for k, v in parse_qsl(query) if k != "embed"}
    assert len(text) < 1_000_000


def test_the_charts_have_titles_and_the_line_below_says_all_of_every_run(stored):
    for one in (Experiment(algorithm="easgd", workers=3), Experiment()):
        stored(one)
    timeline, curves, race = (
        asked(f"embed={kind}&{EASGD}{pin}")[0]
        for kind, pin in (("timeline", ""), ("curves", ""), ("race", "&pin=workers%3D4"))
    )
    assert re.findall("<h2>([^<]*)</h2>", curves) == ["Loss", "Held-out accuracy, %"]
    assert "<h2>Loss</h2>" in race and re.search('class="legend".*EASGD.*Synchronous SGD.*points: held-out', race)
    credit = re.compile('<p class="credit">(.*) · <a')
    told = [credit.search(text)[1] for text in (timeline, curves, race)]
    assert told[0] == told[1] and told[2].startswith(f"{told[0]}; Synchronous SGD on handwritten digits · 4 workers · ")


def test_the_timelines_of_an_embedded_race_have_one_axis_and_one_window(stored):
    runs = Experiment(algorithm="easgd", workers=3), Experiment()
    longest = max(session.load(str(stored(one))).trace.seconds() for one in runs)
    drawn = [frame for name, frame in frames(asked(f"embed=race&{EASGD}&pin=workers%3D4")[0]).items() if name != "loss"]
    assert [one["together"] for one in drawn] == ["race", "race"]
    assert [one["seconds"] for one in drawn] == [longest] * 2 == [one["open"][1] for one in drawn]
    (alone,) = frames(asked(f"embed=timeline&{EASGD}")[0]).values()
    assert "together" not in alone


def test_an_embedded_schedule_is_the_one_of_the_page_of_schedules(stored):
    (drawn,) = frames(asked("embed=schedule&schedule_a=zb_h1&ranks=3&micro_batches=5")[0]).values()
    assert drawn["lanes"] == ["rank 0", "rank 1", "rank 2"] and "5 micro-batches" in drawn["saved"]["heading"]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("embed=sculpture", "There is no picture"),
        ("embed=timeline&cluster=processes", "a link never starts processes"),
        ("embed=timeline&workers=-1", "Workers is"),
        ("embed=schedule&schedule_a=nothing", "There is no schedule"),
        ("embed=schedule&ranks=x", "ranks"),
    ],
)
def test_what_cannot_be_embedded_is_said_in_a_sentence(query, says, folders):
    text, status = asked(query)
    assert status == 400 and says in text and "lockstep.curve =" not in text
