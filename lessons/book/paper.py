"""The book as a PDF: all chapters on one HTML page, printed by Chromium."""

import os
import re
import shutil
import subprocess
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 300  # s
TIME = 20_000  # ms of the page's own time for drawing formulas and figures
HEADING = re.compile(r'(<h[1-6] id=")')
FOLD = '<details class="fold"'
WHOLE = ("figure-", "item-", "fold-")  # anchors that no other chapter has
LINK = re.compile(r'href="(\w+)\.html(?:#([^"]*))?"')


def print_book(site: Path, to: Path) -> None:
    """Print the book built in the folder `site` to the PDF `to`.

    Raise ValueError if there is no Chromium or it fails.
    """
    print_page(site / "paper.html", to)


def print_page(page: Path, to: Path) -> None:
    """Print an HTML page to the PDF `to`. Raise ValueError if Chromium is missing or fails."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise ValueError(
            f"--pdf prints with Chromium, but none of {', '.join(BROWSERS)} was found; install one of them."
        )
    to.parent.mkdir(parents=True, exist_ok=True)
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # root cannot have one
    command = [
        browser, "--headless", "--disable-gpu", *sandbox, "--force-device-scale-factor=2", "--no-pdf-header-footer",
        "--generate-pdf-document-outline", f"--virtual-time-budget={TIME}", f"--print-to-pdf={to.resolve()}",
        page.resolve().as_uri(),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"{browser} did not print the book: {error}.") from None
    if done.returncode or not to.is_file():
        raise ValueError(f"{browser} did not print the book: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")


def on_one_page(chapter: str, article: str) -> str:
    """Return a chapter's HTML in a form for the page that holds all chapters: with unique anchors, internal links and
    open folds.
    """
    article = HEADING.sub(rf"\1{chapter}--", article)
    article = article.replace(FOLD, f"{FOLD} open")
    return inside(re.sub(rf'href="#(?!{"|".join(WHOLE)})', f'href="#{chapter}--', article))


def inside(text: str) -> str:
    """Return HTML in which links to other chapters lead to places on the same page, which holds all chapters."""

    def target(link: re.Match) -> str:
        page, anchor = link[1], link[2] or ""
        whole = anchor.startswith(WHOLE)
        return f'href="#{anchor if whole else f"{page}--{anchor}" if anchor else page}"'

    return LINK.sub(target, text)
