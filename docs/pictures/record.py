"""Record the README's film and small pictures from a real workbench, in light and dark.

    .venv/bin/python docs/pictures/record.py              all of them
    .venv/bin/python docs/pictures/record.py kernel       some, by name

Starts a workbench, drives it in headless Chromium, and writes animated and still WebP next to this file. Each frame of
the film sets the timeline to a moment and takes a screenshot, so a slow machine records the same film as a fast one.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))
from tests.chromium import CHROMIUM, SWITCHES, Browser  # noqa: E402
from tests.patience import wait_until  # noqa: E402
from tests.ports import free_port  # noqa: E402

FILMS = {"film-light": "light", "film-dark": "dark"}  # name -> colour scheme of the page
WINDOW = {"width": 1280, "height": 640}  # px of a film's page
WIDTH = 960  # px of the film
FRAME = 100  # ms
PAGE = {"width": 1280, "height": 1000}  # px of a still picture's page
STILLS = {  # name -> address, and the heading that is scrolled to the top
    "compare": ("?algorithm=easgd&slow=2:4&pin=algorithm%3Dsync_sgd%26slow%3D2:4", "Loss"),
    "break": ("?algorithm=easgd&crash=2:0.01-0.02", "Timeline"),
    "schedule": ("schedules?schedule_a=zb_h1", ""),
    "kernel": ("kernels?kernel=sgd", ""),
    "plan": ("plan", ""),
    "book": ("textbook?chapter=stragglers", ""),
}
CUT = {"x": 365, "y": 70, "width": 890, "height": 590}  # px of a page without its side bar

OVERLAY = """() => {
  const add = (id, style) => {
    const element = document.createElement("div");
    Object.assign(element, { id, style });
    document.body.append(element);
    return element;
  };
  add("film-cursor", "position:fixed;z-index:2147483647;pointer-events:none;width:22px;height:28px;").innerHTML =
    '<svg viewBox="0 0 22 28"><path d="M2 2v20l5-5 4 9 4-2-4-8h8z" fill="#111" stroke="#fff"/></svg>';
  add("film-words", "position:fixed;z-index:2147483646;left:400px;bottom:32px;padding:10px 22px;" +
    "border-radius:8px;font:600 26px sans-serif;background:#0072b2;color:#fff;");
}"""
POINT = """([x, y]) => {
  Object.assign(document.getElementById("film-cursor").style, { left: x + "px", top: y + "px" });
}"""
SEEK = """share => {
  for (const one of lockstepCanvases) if (one.spans && one.playButton && one.stage.isConnected) one.film().at(share);
}"""
READY = """() => [...(globalThis.lockstepCanvases ?? [])].some((one) => one.playButton && one.stage.isConnected)"""


class Film:
    """Frames of a page, and for how many milliseconds each is shown."""

    def __init__(self, page: Page):
        self.page, self.frames, self.times = page, [], []
        self.x, self.y = 900, 540
        page.evaluate(OVERLAY)
        page.evaluate(POINT, [self.x, self.y])

    def shoot(self, duration: int = FRAME) -> None:
        picture = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        self.frames.append(picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.LANCZOS))
        self.times.append(duration)

    def say(self, words: str) -> None:
        self.page.evaluate("words => { document.getElementById('film-words').textContent = words; }", words)

    def click(self, target, frames: int = 8) -> None:
        """Move the pointer to `target` in this many frames, and click on it."""
        box = target.bounding_box()
        to = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        begin = self.x, self.y
        for n in range(1, frames + 1):
            share = n / frames
            self.x, self.y = (a + (b - a) * share for a, b in zip(begin, to, strict=True))
            self.page.evaluate(POINT, [self.x, self.y])
            self.shoot()
        target.click()

    def play(self, frames: int) -> None:
        """Play the timeline's window once."""
        for n in range(frames + 1):
            self.page.evaluate(SEEK, n / frames)
            self.page.wait_for_timeout(40)
            self.shoot()

    def save(self, path: Path) -> None:
        first, *rest = self.frames
        first.save(path, save_all=True, append_images=rest, duration=self.times, loop=0, quality=60, method=3)


def settle(page: Page, title: str = "") -> None:
    """Wait until the page shows the timeline of the run with this title."""
    page.get_by_role("heading", name=title, level=1).or_(
        page.get_by_role("heading", name=title, level=2)
    ).first.wait_for()
    page.wait_for_timeout(2500)
    wait_until(lambda: page.evaluate(READY))
    page.get_by_role("button", name="typical step").wait_for()
    page.wait_for_timeout(3000)


def look_at(page: Page, heading: str = "Timeline") -> None:
    """Scroll the heading that begins with these words to the top."""
    scroll = """heading => {
      const scroller = document.querySelector('[data-testid="stMain"]');
      const head = [...document.querySelectorAll('h3, h2')].find(one => one.textContent.startsWith(heading));
      scroller.scrollBy(0, head.getBoundingClientRect().top - 90);
    }"""
    page.evaluate(scroll, heading)
    page.wait_for_timeout(800)


def film(page: Page, address: str, path: Path) -> None:
    page.goto(f"{address}/?algorithm=sync_sgd&workers=4")
    settle(page)
    look_at(page)
    one = Film(page)
    one.say("Four machines train in lockstep")
    one.shoot(900)
    one.play(28)
    one.say("One becomes slow ...")
    one.click(page.get_by_text("One slow worker", exact=True).first)
    settle(page)
    look_at(page)
    one.say("... and everybody waits for it")
    one.play(40)
    one.shoot(900)
    one.say("Switch to elastic averaging ...")
    menu = page.get_by_role("combobox").first
    one.click(menu)
    page.keyboard.type("easgd")
    page.wait_for_timeout(500)
    one.shoot(700)
    page.keyboard.press("Enter")
    settle(page, "EASGD on")
    look_at(page)
    one.say("... and nobody does")
    one.play(40)
    one.shoot(1500)
    one.save(path)
    print(path.name, f"{path.stat().st_size / 1e6:.2f} MB", f"{sum(one.times) / 1000:.0f} s")


def still(page: Page, address: str, heading: str, path: Path) -> None:
    page.goto(address)
    if heading:
        settle(page)
        look_at(page, heading)
    else:
        page.wait_for_timeout(40_000)  # a first measurement, on a busy machine
    picture = Image.open(io.BytesIO(page.screenshot(clip=CUT))).convert("RGB")
    picture.resize((440, 292), Image.LANCZOS).save(path, quality=80, method=6)


def answers(address: str) -> bool:
    try:
        return urllib.request.urlopen(f"{address}/_stcore/health").status == 200
    except OSError:
        return False


def main(names: list[str]) -> None:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        command = [sys.executable, "-m", "app", "--server.port", str(port), "--server.headless", "true"]
        server = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "LOCKSTEP_RUNS": folder})
        address = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: answers(address), every=0.5)
            browser = Browser(driver.chromium.launch(executable_path=CHROMIUM, args=SWITCHES))
            for name in names or [*FILMS, *STILLS]:
                path = HERE / f"{name}.webp"
                if scheme := FILMS.get(name):
                    film(browser.new_page(viewport=WINDOW, color_scheme=scheme), address, path)
                else:
                    where, heading = STILLS[name]
                    still(browser.new_page(viewport=PAGE), f"{address}/{where}", heading, path)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
