"""What pages of the static book are made of: Markdown as HTML, and links on the page that is printed."""

import pytest

from lessons.book import markdown, paper


def test_a_formula_stays_tex_and_code_gets_colours():
    made = markdown.render("With $a_1 < b$ and\n\n$$\nx^2\n$$\n\n```python\nx = 1\n```\n")
    assert '<span class="math inline">a_1 &lt; b</span>' in made
    assert '<div class="math block">\nx^2\n</div>' in made
    assert '<span class="mi">1</span>' in made


def test_sections_have_the_words_that_a_reader_sees_and_the_anchor_of_their_heading():
    (_, before), (heading, words) = markdown.sections(
        '# Title\n\nFirst.\n\n## Why, $N$?\n\nA <abbr title="a rank">worker</abbr>\nwaits.'
    )
    assert before == "First." and words == "A worker waits."
    assert (heading.level, heading.anchor) == (2, "why-n")
    assert 'id="why-n"' in markdown.render("## Why, $N$?")


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("#why", "#averaging--why"),
        ("stragglers.html", "#stragglers"),
        ("stragglers.html#why", "#stragglers--why"),
        ("stragglers.html#figure-stragglers-tail", "#figure-stragglers-tail"),
        ("#item-averaging-left", "#item-averaging-left"),
        ("https://arxiv.org/abs/1", "https://arxiv.org/abs/1"),
    ],
)
def test_on_paper_a_link_to_another_page_leads_inside_the_one_that_holds_all(there, here):
    article = f'<h2 id="why">Why</h2><a href="{there}">see</a>'
    assert paper.on_one_page("averaging", article) == f'<h2 id="averaging--why">Why</h2><a href="{here}">see</a>'
