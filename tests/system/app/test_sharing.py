"""A link to exactly what is on the page."""

from urllib.parse import parse_qs, urlsplit

import pytest
import streamlit as st

from experiments.specification.experiment import Experiment


def linked(page) -> str:
    """The link of the open Share popover."""
    page.session_state["share-view"] = True
    page.run()
    return next(block.value for block in page.code if "?" in block.value)


def test_a_link_has_the_view_and_the_pinned_runs_as_what_makes_them_again(page, stored, folders):
    one, two = Experiment(), Experiment(algorithm="easgd")
    pinned = stored(two).name
    stored(one)
    opened = page(f"{one.query()}&axis=seconds&log=true&pin={pinned}")
    assert not opened.exception
    parts = parse_qs(urlsplit(linked(opened)).query)
    assert parts["axis"] == ["seconds"] and parts["log"] == ["true"] and parts["algorithm"] == ["sync_sgd"]
    assert parts["pin"] == [two.query()]


def test_a_link_pins_its_runs_where_they_were_never_made(page, stored):
    one, two = Experiment(), Experiment(algorithm="easgd", steps=20)
    stored(one)
    folder = stored(two)
    opened = page(f"{one.query()}&pin=" + two.query().replace("&", "%26").replace("=", "%3D"))
    assert opened.query_params["pin"] in (folder.name, [folder.name])
    assert any(button.key == f"unpin-{folder.name}" for button in opened.button)


def test_pins_come_back_with_a_reader_who_has_visited_another_page_and_those_removed_do_not(page, stored):
    stored(Experiment())
    pinned = stored(Experiment(algorithm="easgd")).name
    opened = page(f"pin={pinned}")
    del opened.query_params["pin"]  # as the address of another page has none
    opened.run()
    assert opened.query_params["pin"] in (pinned, [pinned])
    opened.button(f"unpin-{pinned}").click().run()
    assert "pin" not in opened.query_params
    opened.run()
    assert not opened.exception and "pin" not in opened.query_params


def test_what_a_link_cannot_pin_it_says_in_a_sentence(page, stored):
    stored(Experiment())
    opened = page(f"{Experiment().query()}&pin=cluster%3Dprocesses")
    assert any("omitted" in warning.value for warning in opened.warning)
    assert "pin" not in opened.query_params


def test_a_link_of_the_first_screen_opens_with_it_and_with_the_critical_path_and_plays_nothing(page, stored, canvases):
    stored(Experiment())
    first = page(unfolded=False)
    first.session_state["view"] = {"view": '{"critical": true, "why": [1, 0.01, 0]}'}
    link = urlsplit(linked(first)).query
    assert {"critical": ["true"], "welcome": ["true"], "why": ["1~0.01~0"]}.items() <= parse_qs(link).items()
    opened = page(link, unfolded=False)
    assert not opened.exception and any("Train one model" in one.value for one in opened.markdown)
    header, _ = canvases(opened)["timeline"]
    assert header["critical"] and not header["play"] and canvases(first)["timeline"][0]["play"]
    assert opened.session_state["welcome"] and not canvases(page(Experiment().query()))["timeline"][0]["critical"]


def test_what_does_not_come_with_a_link_is_said_beside_it(page, stored):
    stored(Experiment())
    opened = page(Experiment().query())
    linked(opened)
    assert any("does not include the previous run" in one.value for one in opened.caption)


def test_the_files_of_a_result_are_made_when_they_are_asked_for_and_not_before(page, stored, monkeypatch):
    from experiments.exports import export

    def made(*_):
        raise AssertionError("made before it was asked for")

    for maker in ("timeline_svg", "chrome_trace", "csv_text"):
        monkeypatch.setattr(export, maker, made)
    stored(Experiment())
    opened = page(Experiment().query())
    assert not opened.exception
    offered = {button.proto.label: button.proto for button in opened.get("download_button")}
    assert {"Timeline (SVG)", "Timeline (Chrome trace)", "Report (HTML)"} <= offered.keys()
    assert all(proto.HasField("deferred_file_id") for proto in offered.values())


@pytest.mark.parametrize(("server", "only_here"), [("http://localhost:8711", True), ("https://lab.example.org", False)])
def test_a_link_that_only_this_machine_can_open_says_so(page, stored, monkeypatch, server, only_here):
    monkeypatch.setattr(type(st.context), "url", server)  # without a slash, as Streamlit has it
    stored(Experiment())
    opened = page(Experiment().query())
    assert linked(opened).startswith(f"{server}/?algorithm=")
    assert any("this machine only" in one.value for one in opened.caption) == only_here


def test_a_link_that_is_shared_does_not_wait_because_its_sender_has_runs_wait(page, stored):
    stored(Experiment(workers=8))
    opened = page("workers=8")
    assert opened.query_params["at_once"] in ("false", ["false"])
    opened.session_state["share-view"] = True
    (link,) = [block.value for block in opened.run().code if "?" in block.value and "workers=8" in block.value][:1]
    assert "at_once" not in link
