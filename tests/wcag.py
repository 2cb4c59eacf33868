"""axe-core on a page in a browser: what it finds against WCAG 2.1, levels A and AA."""

from pathlib import Path

import axe_playwright_python

SCRIPT = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
LOOK = f"""async () => {{
  const found = await axe.run(document, {{ runOnly: {RULES}, resultTypes: ["violations"], preload: false }});
  return found.violations.flatMap(({{ id, nodes }}) => nodes.map((node) => `${{id}}: ${{node.html.slice(0, 200)}}`));
}}"""

SWITCHED = """(scheme) => {
  const page = document.querySelector(".stApp") ?? document.body;
  const [r, g, b] = getComputedStyle(page).backgroundColor.match(/\\d+/g).map(Number);
  return (r + g + b < 3 * 128) === (scheme === "dark");
}"""
SETTLED = """() => Promise.allSettled(document.getAnimations()
  .filter((one) => one.effect.getComputedTiming().iterations !== Infinity).map((one) => one.finished))"""


def violations(page) -> list[str]:
    """Return what violates a rule on the page as it is now: the rule, and the element."""
    page.evaluate(SCRIPT)
    return page.evaluate(LOOK)


def in_both_schemes(page) -> list[str]:
    """Return the violations in dark and in light, in which the page is left."""
    found = []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(SWITCHED, arg=scheme)
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.evaluate(SETTLED)  # colours change gradually
        found += [f"{scheme}: {one}" for one in violations(page)]
    return found
