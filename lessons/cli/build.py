"""`build`: the whole book as static HTML or PDF."""

from pathlib import Path

import click

from lessons.cli.console import console, usage_errors


@click.command(help="Write the whole book as static HTML. It needs no server or network. With --pdf, also write a PDF.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="site", show_default=True)
@click.option("--workbench", default="", metavar="URL", help="address of the workbench that runs and exercises link to")
@click.option("--pdf", type=click.Path(dir_okay=False, path_type=Path), help="also print the book to this file")
def build(out: Path, workbench: str, pdf: Path | None) -> None:
    from lessons import book
    from lessons.book import paper

    with usage_errors():
        pages = book.build(out, workbench)
        size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
        console.print(f"{len(pages)} pages, {size / 1e6:.1f} MB: open {out / 'index.html'}", highlight=False)
        if pdf:
            with console.status("printing"):
                paper.print_book(out, pdf)
            console.print(f"{pdf}", highlight=False)
