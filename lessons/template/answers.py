"""Answers to the quiz: functions of `run` and an item's parameters, which ask the simulator or a closed form."""

from lessons.figure import column
from lessons.template import experiments


def larger(run):
    low, high = column(experiments.first.rows(run), "loss")
    return "larger" if high < low else "smaller"


def twice(run, n):
    return 2 * n
