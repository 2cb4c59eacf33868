"""The curtain of opening.js before a page that is slow to come, in a real Chromium whose clock the test turns."""

import pytest

from app.browser.opening import CURTAIN, HERE
from tests.chromium import NEEDED

pytestmark = NEEDED
WORDS, RUN = (
    f'<div data-testid="stElementContainer">{part}</div>' for part in ("words", "<p data-testid=stProgress></p>")
)
KINDS = f'<div class="st-key-first-kinds">{WORDS}{RUN}</div>'
PAGE = """<div class="curtain"></div>
<div data-testid="stApp" data-test-script-state="running"><div data-testid="stMain">{}</div></div>
<script type="module">{}</script>"""


@pytest.fixture
def curtained(browser):
    """curtained(parts) is a page of which no more has come than these, while its script goes on."""
    pages = []

    def opened(parts: str):
        page = browser.new_page()
        pages.append(page)
        page.clock.install(time=0)
        page.clock.pause_at(3_600_000)  # from here on only the test turns it, whatever the machine is busy with
        page.set_content(PAGE.format(parts, (HERE / "opening.js").read_text("utf-8")))
        return page

    yield opened
    for page in pages:
        page.close()


@pytest.mark.parametrize(
    ("parts", "seconds"),
    [(KINDS, 1000), (WORDS, 20), (KINDS + WORDS, 20), (RUN, 10), (KINDS + RUN, 10)],
    ids=["hidden parts", "words", "words behind hidden parts", "a run under way", "a run behind hidden parts"],
)
def test_the_curtain_waits_longer_for_a_page_that_has_nothing_yet_to_be_watched(curtained, parts, seconds):
    page = curtained(parts)
    now = 0
    for second in sorted({0, 1, min(seconds, 30), min(seconds + 1, 30), 30}):
        page.clock.run_for(1000 * (second - now))
        now = second
        assert page.locator(".curtain").count() == (second <= seconds), second


FONTS = """<style>@font-face { font-family: "Source Sans"; src: url(http://fonts.example/upright) }
@font-face { font-family: "Source Sans"; font-style: italic; src: url(http://fonts.example/italic) }
body { font-family: "Source Sans" }</style>"""


def test_no_bar_of_the_curtain_fetches_the_font_of_italics(browser):
    page, asked = browser.new_page(), []
    page.route("http://fonts.example/*", lambda route: (asked.append(route.request.url), route.abort()))
    page.set_content(f"{FONTS}<style>{(HERE / 'style.css').read_text('utf-8')}</style>{CURTAIN}<p>words</p>")
    page.evaluate("document.fonts.ready.then(() => [...document.fonts].map((one) => one.status))")
    assert page.locator(".curtain i").count() == 4 and asked == ["http://fonts.example/upright"]
    page.close()
