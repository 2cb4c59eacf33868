"""The content of the page for instructors: sections of Markdown, and files to download."""

from pathlib import Path
from typing import NamedTuple

from lessons.instructor import course

HERE = Path(__file__).parent


class Section(NamedTuple):
    """A heading and the Markdown below it."""

    title: str
    text: str


def sections() -> list[Section]:
    """Return the sections of the page. The page itself lists the labs above the text of the first section."""
    return [
        Section("Labs", LABS),
        Section("Commands", COMMANDS),
        *(Section(f"Syllabus: {name}", course.syllabus(name)) for name in course.courses()),
        *_of("project.md"),
        *_of("notes.md"),
        Section("Hosting a class", HOSTING),
        Section("To take away", "The project, the notes and the course plans as files that you can adapt."),
    ]


def downloads() -> dict[str, str]:
    """Return the texts of the files to download, by name."""
    names = ("project.md", "notes.md", "course.toml")
    return {name: (HERE / name).read_text("utf-8") for name in names}


def _of(name: str) -> list[Section]:
    """Return a Section for each heading of the Markdown file `name`."""
    _, *parts = (HERE / name).read_text("utf-8").split("## ")
    return [Section(*(piece.strip() for piece in part.split("\n", 1))) for part in parts]


COMMANDS = """
```
lockstep book lab averaging                                     # the sheet with expected results
lockstep book handout averaging --out handout.html --base https://lab.example.edu/   # for students: no results
lockstep book check averaging hand_ins.zip --csv grades.csv     # grade many; again: only new or changed ones
lockstep book check averaging mine.py --gradescope results.json # also --otter, --classroom
lockstep grade --gradescope averaging                      # the zip of its autograder; also --nbgrader
lockstep book quiz averaging --gift quiz.gift --seed 3          # questions for Moodle, with drawn numbers
lockstep book progress hand_ins/*.json --csv answers.csv        # what students answered, and how sure they were
lockstep book bugs --answers ada.json                           # grade what a student found in *Find the bug*
lockstep book inventory --before ada.json                       # questions before the course, --after at its end
lockstep book inventory --report FOLDER --csv class.csv         # gain, difficulty, and which misconceptions remain
```

A pile is a folder or a zip: files, or a folder for each student, as Moodle and Canvas make them. Everybody gets
the same hidden cases (`--seed`). Each solution runs in a sandbox of its own, and one bad file never stops the pile.
Knowing the grader earns nothing: every mark is measured in the same runs, sizes and optima are drawn, and a solution
reads Python and NumPy only. How to grade on Gradescope, nbgrader, Otter and GitHub Classroom is in
`lessons/instructor/autograder/README.md`.
"""
LABS = """
The links open the sheets with hints and expected results, here in this session. If a password is set, a reloaded
page or another tab is a new session: it shows the handout until you give the password again, on this page. The handout
is what students see, without hints and results, with tables to fill in.
"""
HOSTING = """
This page is at `/instructors`. `LOCKSTEP_INSTRUCTOR` in the environment of the server decides who sees it and the
expected results of the labs: unset, nobody; `1`, everybody who reaches the server, for your own laptop; any other text
is a password, asked for once per session. On a server for a class, also lock the files of answers that
`docs/teaching.md` lists under *What students cannot see*.
"""
