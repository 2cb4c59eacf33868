import shutil

import lessons
from lessons.chapters import Chapter
from lessons.job_specs import figure_spec


def test_a_figure_is_computed_again_after_any_file_of_its_chapter_has_changed(tmp_path, monkeypatch):
    folder = tmp_path / "gossip"
    shutil.copytree(lessons.chapter("gossip").folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(lessons, "chapter", lambda name: Chapter(folder))
    sources = sorted(folder.rglob("*.py"))
    assert {path.parent.name for path in sources} == {"gossip", "experiments"}
    for source in sources:
        before = figure_spec("gossip.rings")
        source.write_text(source.read_text("utf-8") + "\n", "utf-8")
        assert figure_spec("gossip.rings") != before, source
