"""Build the whole book as static HTML that needs no server and no network, and works in any browser.

    site.py         all pages, their order, and the files next to them
    chapter.py      a chapter in the form that its template needs
    figures.py      figures, schedules and timelines, as frames for the canvases
    questions.py    questions with all their parameters and answers
    exercises.py    the exercise of a chapter, and its start files
    markdown.py     Markdown as HTML
    documentation.py  the project's own texts, a page for each algorithm, the reference
    search.py       the index of the search
    paper.py        the book as a PDF
    templates/      Jinja2
    assets/         style and scripts; classic scripts, since a page opened from disk may not import modules
    vendor/         KaTeX and fonts, as their makers publish them, and CodeMirror in one file, with their licences

A page contains its data, and keeps a reader's progress as the workbench does (progress.js).
"""

from lessons.book.site import build as build
