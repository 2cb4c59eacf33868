"""The companion to the survey: what the sources name is in the catalogue and in the book, and can be cited."""

import re

import bibtexparser
import pytest
from click.testing import CliRunner

import algorithms
import lessons
from algorithms.catalogue import COMPRESSIONS, DECLARED
from experiments.specification.experiment import Experiment
from lessons import links, survey
from lessons.cli.survey import survey as command
from lessons.survey import bibliography, costs, methods
from tests.sources import ROOT

WITHOUT = {
    "Large Scale Distributed Deep Networks": "NIPS 2012, whose papers have no DOI; not on arXiv",
    "ImageNet Classification with Deep Convolutional": "NIPS 2012, whose papers have no DOI; not on arXiv",
    "Parallelized Stochastic Gradient Descent": "NIPS 2010, whose papers have no DOI; not on arXiv",
    "Distributed Training Strategies for the Structured Perceptron": "NAACL 2010, which has no DOIs",
    "Solving the Straggler Problem with Bounded Staleness": "HotOS 2013, which has no DOIs",
    "Stale Synchronous Parallel Parameter Server": "NIPS 2013, whose papers have no DOI; not on arXiv",
    "Project Adam": "OSDI 2014, which has no DOIs",
    "Scaling Distributed Machine Learning with the Parameter Server": "OSDI 2014, which has no DOIs",
    "On Scalable Deep Learning and Parallelizing Gradient Descent": "a master thesis",
    "Language Models are Unsupervised Multitask Learners": "a report of OpenAI, 2019; no DOI, not on arXiv",
    "Pipelined Back-Propagation for Context-Dependent": "Interspeech 2012; no DOI could be looked up",
    "A Method of Solving a Convex Programming Problem": "Soviet Mathematics Doklady 1983, without DOIs; not on arXiv",
    "Efficient Estimations from a Slowly Convergent": "a technical report",
    "The Tradeoffs of Large Scale Learning": "NIPS 2007, whose papers have no DOI; not on arXiv",
    "Adaptive Subgradient Methods for Online Learning": "JMLR, which has no DOIs; not on arXiv",
    "RMSProp": "a lecture",
    "Learning to Tell Two Spirals Apart": "a summer school's proceedings of 1988, which have no DOI",
    "How SGD Selects the Global Minima": "NeurIPS 2018, whose papers have no DOI; not on arXiv",
    "On Optimization Methods for Deep Learning": "ICML 2011, which has no DOIs; not on arXiv",
    "On the Importance of Initialization and Momentum": "ICML 2013, which has no DOIs; not on arXiv",
    "Accelerating Stochastic Gradient Descent using Predictive": "NIPS 2013, whose papers have no DOI; not on arXiv",
    "High Performance Parallel Stochastic Gradient Descent": "IPDPS 2016; no DOI could be looked up",
    "Taming the Wild": "NIPS 2015, whose papers have no DOI",
    "HogWild++": "ICDM 2016; no DOI could be looked up",
    "Supervised Learning on Large Redundant Training Sets": "a workshop of 1992; no DOI could be looked up",
    "Large Scale Online Learning": "NIPS 2003, whose papers have no DOI; not on arXiv",
    "Removing Noise in On-line Search": "NIPS 1996, whose papers have no DOI; not on arXiv",
    "Training of Conditional Maximum Entropy Models": "NIPS 2009, whose papers have no DOI; not on arXiv",
    "DAWNBench": "a workshop of NIPS 2017, whose papers have no DOI",
    "Deep Learning via Hessian-Free Optimization": "ICML 2010, which has no DOIs; not on arXiv",
    "Piper: Multidimensional Planner": "NeurIPS 2021, whose papers have no DOI; not on arXiv",
}
"""References of chapters without a link, and why."""


def test_every_method_is_priced_for_the_same_samples():
    rows = {row["method"]: row["computation value"] for row in survey.table(survey.MODELS["7 layers of 2,048"])}
    assert rows["gpipe"] == rows["sync_sgd"] == rows["sgd"] == rows["tensor"] == rows["ddg"] == rows["three_d"]


def test_every_surveyed_method_has_a_module_or_says_why_not():
    assert len(methods.sources()) == 5
    for row in survey.rows():
        assert bool(row["module"]) != (not row["module"] and bool(row["without"]))
        if row["module"]:
            assert len(methods.read_source(row["module"])) > 10
            short = row["module"].rpartition(".")[2]
            assert short in algorithms.names() or short in COMPRESSIONS


def test_every_source_of_a_method_is_among_the_methods_of_the_catalogue():
    assert survey.surveyed_algorithms() <= set(algorithms.names())
    assert len(survey.surveyed_algorithms()) > 40


def test_a_chapter_is_one_where_the_method_is_shown():
    known = {f"{chapter}.{name}" for chapter in lessons.CHAPTERS for name in lessons.figures(chapter)}
    for name in (*algorithms.names(), *COMPRESSIONS):
        assert set(methods.figures_of(name)) <= known
        for chapter in methods.chapters_of(name):
            folder = ROOT / "lessons" / chapter
            said = "".join(path.read_text("utf-8") for path in (*folder.rglob("*.py"), *folder.glob("text.md")))
            assert re.search(rf"\b{name}\b", said) or name == "sync_sgd", (name, chapter)
    assert methods.chapters_of("easgd")[0] == "averaging" and "shared_memory" in methods.chapters_of("hogwild")
    assert "pipedream" in methods.chapters_of("pipedream") and not methods.figures_of("parzen")


def test_every_numbered_reference_of_a_survey_is_in_the_bibliography():
    known = {entry.surname for entry in bibliography.entries()}
    for row in survey.rows():
        if row["reference"].isdigit() and ":" in row["work"]:
            first = re.match(r"[^\W\d]+", row["work"])[0]
            assert first in known, row["work"]
    named = {entry.name for entry in bibliography.entries()}
    assert {"Rumelhart 1986", "Smith 2018b", "Zhang 2004", "Seide 2014b", "Paine 2013", "Lee 2018"} <= named


def test_figures_of_abstracts_exist_and_others_say_why_there_is_none():
    for source in methods.sources():
        assert source.result and (source.figure or source.instead)
        if source.figure:
            assert lessons.find(source.figure).name == source.figure.partition(".")[2]
        assert source.key in {entry.name for entry in bibliography.entries()}


def test_numbers_follow_the_cluster_that_the_reader_chooses():
    of = {n: {r["method"]: r for r in survey.table(survey.MODELS["8 layers of 64"], survey.Cluster(n))} for n in (4, 8)}
    d = 8 * (64 * 64 + 64)
    for workers, rows in of.items():
        assert rows["sync_sgd"]["communication value"] == 4 * 2 * (workers - 1) * d
        assert rows["asgd"]["staleness value"] == workers - 1
        assert rows["zero3"]["memory value"] == pytest.approx(4 * (4 * d / workers + 2 * d / 8 + 32 * 8 * 64))
        assert rows["sgd"]["workers"] == 1 and rows["sandblaster"]["communication value"] is None
    often = survey.table(survey.MODELS["8 layers of 64"], survey.Cluster(8, settings={"H": 1}))
    assert next(row for row in often if row["method"] == "easgd")["communication value"] == 4 * 2 * 8 * d


def test_every_row_leads_to_a_run():
    from experiments.specification.experiment import Experiment

    for row in survey.table(survey.MODELS["8 layers of 64"]):
        experiment = Experiment.from_query(row["run"])
        assert (experiment.algorithm, experiment.workers) == (row["method"], row["workers"])


def test_symbols_of_formulas_are_explained():
    for of in costs.every().values():
        for quantity in costs.QUANTITIES:
            named = set(re.findall(r"[A-Za-z]+", getattr(of, quantity))) - set(costs.WORDS)
            assert named <= set(costs.SYMBOLS), named


def test_a_method_has_the_costs_of_its_family_except_those_of_its_own_entry():
    common = DECLARED["families"]["sequential"]
    assert costs.every()["sgd"].memory == common["memory"] != costs.every()["adam"].memory
    assert costs.every()["adam"].memory == DECLARED["sequential.adam"]["memory"]
    assert costs.every()["easgd"].computation == DECLARED["families"]["averaging"]["computation"]


def test_the_table_has_the_memory_of_servers_where_there_are_any():
    rows = {row["method"]: row for row in survey.table(survey.MODELS["8 layers of 64"], survey.Cluster(4))}
    d = 8 * (64 * 64 + 64)
    assert rows["dc_asgd"]["server value"] == 4 * 9 * d > rows["dc_asgd"]["memory value"]
    assert (rows["sync_sgd"]["server"], rows["sync_sgd"]["server value"]) == ("", None)


def test_the_command_prints_the_server_of_a_method_and_the_symbols_of_its_formulas():
    said = CliRunner().invoke(command, ["--costs", "--family", "asynchronous", "--workers", "4"]).output
    assert re.search(r"server +19\.3 GB +\(2 N\+1\) d\n", said)
    assert re.findall(r"^  (\w)  ", said, re.MULTILINE) == list("NdBFAHKn")


def test_the_page_as_markdown_has_every_method():
    text = survey.markdown()
    assert all(f"| {name} |" in text for name in algorithms.names())
    assert all(source.title in text for source in methods.sources())


def test_every_number_of_the_page_leads_to_a_run_and_every_figure_to_its_place():
    text = survey.markdown(address=lambda chapter, anchor: f"{chapter}.html#{anchor}", workbench="http://here")
    runs = re.findall(r"\]\(http://here/\?([^)]+)\)", text)
    assert len(runs) > 3 * len(algorithms.names()) and all(Experiment.from_query(run) for run in {*runs})
    shown = {name for row in survey.rows() for name in survey.first_figures(row)[0].values()}
    assert len(shown) > 20 and all(f".html#figure-{name.replace('.', '-')})" in text for name in shown)


def test_bibtex_reads_back_with_all_its_works():
    entries = bibliography.entries()
    read = bibtexparser.parse_string("\n".join(map(bibliography.bibtex, entries)))
    assert not read.failed_blocks and len(read.entries) == len(entries) > 100
    back = {entry.key: {field.key: field.value for field in entry.fields} for entry in read.entries}
    dean = back["dean2012"]
    assert dean["author"].startswith("J. Dean and G. S. Corrado and ") and dean["booktitle"] == "NIPS 2012"
    assert back["valiant1990"]["doi"] == "10.1145/79173.79181" and back["valiant1990"]["volume"] == "33"
    assert back["stich2019"]["eprint"] == "1805.09767"
    for entry, fields in zip(entries, back.values(), strict=True):
        assert fields["year"] == entry.year[:4] and entry.title.split()[0] in fields["title"].replace("\\", "")


def test_what_a_chapter_or_a_module_cites_can_be_asked_for():
    assert {"Zhang 2015", "Stich 2019"} <= {entry.name for entry in bibliography.cited_by("averaging")}
    assert [entry.name for entry in bibliography.cited_by("easgd")] == ["Zhang 2015"]
    with pytest.raises(ValueError, match="did you mean easgd"):
        bibliography.cited_by("easgdd")


def test_numbers_of_papers_become_links():
    text = "J. Dean, arXiv:1604.00981, 2016; doi:10.1145/79173.79181. [arXiv:1604.00981](x)"
    assert links.link_identifiers(text) == (
        "J. Dean, [arXiv:1604.00981](https://arxiv.org/abs/1604.00981), 2016; "
        "[doi:10.1145/79173.79181](https://doi.org/10.1145/79173.79181). [arXiv:1604.00981](x)"
    )


def test_a_doi_with_brackets_is_one_link():
    doi = "10.1016/0041-5553(64)90137-5"
    assert links.link_identifiers(f"(doi:{doi}).") == f"([doi:{doi}](https://doi.org/{doi}))."


def test_every_reference_of_a_chapter_has_a_link_or_a_reason():
    used = set()
    for chapter in lessons.written_chapters():
        shown = links.link_identifiers(chapter.text()).split("## Sources")[-1]
        for item in re.split(r"\n- ", shown)[1:]:
            words = " ".join(item.split())
            if "](https://" not in words:
                why = [title for title in WITHOUT if title in words]
                assert why, f"{chapter.name}: {words}"
                used |= {*why}
    assert used == set(WITHOUT)


def test_every_chapter_says_what_happened_since_2020_and_names_two_works_of_that_time():
    for chapter in lessons.written_chapters():
        text, _, sources = chapter.text().partition("\n## Sources\n")
        section = text.partition("\n## Since 2020\n")[2]
        assert 40 < len(section.partition("\n## ")[0].split()) < 260 and "\n## What to keep\n" in section, chapter.name
        years = [int(year) for item in sources.split("\n- ") for year in re.findall(r"\b(?:19|20)\d\d\b", item)[-1:]]
        assert sum(year > 2019 for year in years) >= 2, chapter.name


def test_blocks_of_a_text_have_the_links():
    blocks = lessons.chapter("stragglers").blocks()
    assert any("](https://doi.org/10.1145/79173.79181)" in getattr(block, "markdown", "") for block in blocks)


def test_a_name_is_spelled_in_one_way():
    for path in (*ROOT.glob("lessons/*/text.md"), ROOT / "docs" / "bibliography.md", *ROOT.glob("algorithms/*/*.py")):
        assert "Petrowski" not in path.read_text("utf-8"), path


def test_the_citation_names_the_project_and_nobody_that_does_not_exist():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert "cff-version: 1.2.0" in text and "name: The Lockstep authors" in text and "10.7776/ASK.2020.39.6.505" in text


def test_a_formula_of_an_unknown_symbol_has_no_number_and_any_other_mistake_is_raised(monkeypatch):
    def broken(_):
        raise ValueError("this is undefined")

    one = costs.Costs("2 * Z", "min(d)", "", "", "")
    monkeypatch.setitem(costs.WORDS, "min", broken)
    assert one.evaluate("computation", {"S": 2}) is None
    with pytest.raises(ValueError, match="this is undefined"):
        one.evaluate("communication", {"S": 2, "d": 3})
