"""`build`: write the whole book as static HTML or PDF."""

from pathlib import Path

import click

from lessons.cli.console import console, usage_errors


@click.command(help="Write the whole book as static HTML. It needs no server or network. With --pdf, also write a PDF.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="site", show_default=True)
@click.option("--workbench", default="", metavar="URL", help="address of the workbench that runs and exercises link to")
@click.option("--pdf", type=click.Path(dir_okay=False, path_type=Path), help="also print the book to this file")
@click.option("--live", is_flag=True, help="add Python for the browser, so that pages can run experiments; 12 MB")
@click.option(
    "--pyodide",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="FOLDER",
    help="with --live: an unpacked Pyodide with NumPy; without it, the release is downloaded once",
)
def build(out: Path, workbench: str, pdf: Path | None, live: bool, pyodide: Path | None) -> None:
    from lessons import book
    from lessons.book import paper
    from lessons.live import bytecode, distribution

    with usage_errors():
        pages = book.build(out, workbench, distribution.load(pyodide) if live or pyodide else None)
        size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
        console.print(f"{len(pages)} pages, {size / 1e6:.1f} MB: open {out / 'index.html'}", highlight=False)
        if (live or pyodide) and not bytecode.interpreter():
            console.print("Experiments start faster in a book that is built where python3.12 is on the path.")
        if pdf:
            with console.status("printing"):
                paper.print_book(out, pdf)
            console.print(f"{pdf}", highlight=False)
