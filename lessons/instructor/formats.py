"""A grading report in the formats of other graders: Gradescope, Otter-Grader, GitHub Classroom."""

import base64
import json
from collections.abc import Callable
from typing import Any

from lessons.grading.grader import GradingReport


def gradescope(report: GradingReport) -> dict[str, Any]:
    """Return Gradescope's results.json (gradescope-autograders.readthedocs.io, Autograder Specifications)."""
    tests = [
        {
            "name": mark.name, "score": mark.earned, "max_score": mark.points, "output": mark.observed,
            "status": "passed" if mark.earned else "failed", "visibility": "visible",
        }
        for mark in report.marks
    ]  # fmt: skip
    said = f"{report.score} of 100." + (f" Grading ended early: {report.error}" if report.error else "")
    return {
        "output": said, "execution_time": round(report.seconds, 1), "stdout_visibility": "hidden", "tests": tests,
        "extra_data": {
            "chapter": report.chapter, "score_of_100": report.score, "seed": report.seed,
            "level": report.level, "hints": list(report.hints),
        },
    }  # fmt: skip


def otter(report: GradingReport) -> dict[str, Any]:
    """Return the JSON that Otter-Grader 7.0 reads with GradingResults.from_ottr_json. Each mark becomes a test file."""
    return {
        "test_file_results": [
            {
                "filename": f"{number:02} {mark.name}.py",
                "points": mark.points,
                "test_case_results": [
                    {
                        "test_case": {
                            "name": mark.name, "code": "", "points": mark.points, "hidden": False,
                            "success_message": mark.observed, "failure_message": mark.observed,
                        },
                        "passed": bool(mark.earned),
                        "error": "" if mark.earned else report.error or mark.observed,
                    }
                ],
            }
            for number, mark in enumerate(report.marks, 1)
        ]
    }  # fmt: skip


def classroom(report: GradingReport) -> dict[str, Any]:
    """Return one runner's result for GitHub Classroom's autograding-grading-reporter@v1, as JSON in base64."""
    tests = [
        {
            "name": mark.name, "status": "pass" if mark.earned else "fail", "score": mark.earned, "line_no": 0,
            "message": mark.observed, "test_code": "",
        }
        for mark in report.marks
    ]  # fmt: skip
    status = "pass" if report.score == 100 else "error" if report.error else "fail"
    most = sum(mark.points for mark in report.marks)
    return {"version": 1, "status": status, "max_score": most, "tests": tests}


def _json(values: dict[str, Any]) -> str:
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


FORMATS: dict[str, Callable[[GradingReport], str]] = {
    "gradescope": lambda report: _json(gradescope(report)),
    "otter": lambda report: _json(otter(report)),
    "classroom": lambda report: base64.b64encode(_json(classroom(report)).encode()).decode() + "\n",
}
"""{format: function}. The function takes a report, and returns the text of the file that the other grader reads."""
