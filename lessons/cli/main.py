"""The textbook from the command line.

lockstep book list                          list chapters and figures, with their questions
lockstep book show stragglers               print a chapter; with the name of a figure, run that figure
lockstep book run stragglers --out folder   run all figures of a chapter; export rows (CSV) and charts (HTML)
lockstep book run --fresh 5                 for authors: try all claims under five seeds nobody has looked at
lockstep book quiz stragglers               predict, then compare with the simulator
lockstep book exercise stragglers --level 2 print the start file; without --level, the task
lockstep book check stragglers mine.py      grade a solution; without a file, print points and targets
lockstep book check stragglers mine.py --hint 2   print the next hint on mark 2
lockstep book bugs easgd                    find the bug: name what is wrong, then the line
lockstep book inventory --before ada.json    the concept inventory before (--after) a course; --report FOLDER
lockstep book progress *.json --csv out     for instructors: a table of handed-in answers, one row per student
lockstep book check stragglers pile --csv grades.csv    grade a folder or zip of solutions
lockstep grade --gradescope stragglers      write the zip of an autograder; --nbgrader: a notebook
lockstep book lab stragglers                for instructors: the lab sheet with expected results
lockstep book handout stragglers --out FILE the lab's handout for students, without results
lockstep book build --out site              write the whole book as static HTML; --pdf FILE prints it, too
lockstep book build --out site --live       the same, with runs that the reader's browser computes
lockstep book golden stragglers             for authors: record figures and quiz answers in the golden file
lockstep book new momentum                  for authors: start a chapter
lockstep book survey --costs                the survey section by section; what a step of each method costs
lockstep book bib --cited-by averaging      BibTeX of what the project cites, or one chapter or module

Exit codes: 0 success; 1 a claim does not hold, the solution lost marks, or a file is not a progress file; 2 usage
error.
"""

from collections.abc import Sequence

import click

from experiments.cli.console import ByPurpose
from experiments.cli.entry import run_group
from lessons.cli import authoring, bugs, build, check, exercise, grade, inventory, labs, progress, quiz, reading, survey

COMMANDS = {
    "To learn": (
        *(reading.listing, reading.show, reading.run, quiz.quiz, exercise.exercise, check.check, bugs.bugs),
        *(inventory.take, survey.survey, survey.bib),
    ),
    "To teach": (labs.lab, labs.handout, grade.grade, progress.handed_in),
    "To write and publish": (authoring.begin, authoring.write_golden, build.build),
}


@click.group(cls=ByPurpose, purposes=COMMANDS, help="The textbook: its chapters, figures, quizzes and exercises.")
def main() -> None:
    pass


def command_line(words: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. A user error is printed on stderr as one sentence."""
    return run_group(main, words, "lockstep book")
