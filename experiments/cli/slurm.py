"""`--to slurm`: write an experiment as a SLURM batch job (`run`), or a sweep as a job array. It is printed, or
submitted by sbatch.

One task of a batch job is one rank; a task of an array runs its share of a sweep. For options not offered here, set
sbatch's own variables, such as SBATCH_QOS, or print the script, change it and submit it by hand. Source: sbatch(1),
srun(1).
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

import algorithms
from experiments.cli.running import check_writable
from experiments.specification.experiment import Experiment
from kernels import ONE_THREAD

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """\
#!/bin/bash
{asked}

export PYTHONPATH={root}${{PYTHONPATH:+:$PYTHONPATH}} {one_thread}
# A task is a rank; ranks meet on the first node. If one is lost, the others continue if they can.
srun --kill-on-bad-exit=0 {command}
"""
ARRAY = """\
#!/bin/bash
{asked}

export PYTHONPATH={root}${{PYTHONPATH:+:$PYTHONPATH}} {one_thread}
# Task i runs points i, i + {tasks}, ... Once all have ended, the same sweep without --to shows the table.
points=(
{points}
)
for ((n = SLURM_ARRAY_TASK_ID; n < {count}; n += {tasks})); do
  eval "{command} ${{points[n]}}" || failed=1
done
exit ${{failed:-0}}
"""
LIMIT = re.compile(r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}")  # sbatch(1): minutes, or days, hours, minutes, seconds
OPTIONS = {
    "to": click.option(
        "--to", type=click.Choice(["slurm"]), help="print the run as a batch job instead of running it here"
    ),
    "submit": click.option("--submit", is_flag=True, help="with --to: submit the job, and print its number"),
    "nodes": click.option(
        "--nodes", type=click.IntRange(1), metavar="INT", help="with --to: number of nodes [default: 1]"
    ),
    "time": click.option("--time", metavar="M|H:M:S", help="with --to: time limit of the job, 10 (minutes) or 1:00:00"),
    "partition": click.option("--partition", metavar="NAME", help="with --to: partition to queue the job in"),
    "account": click.option("--account", metavar="NAME", help="with --to: account to charge"),
}


OF_ARRAYS = {
    **{name: option for name, option in OPTIONS.items() if name != "nodes"},
    "array": click.option(
        "--array",
        type=click.IntRange(1),
        metavar="INT",
        help="with --to: number of tasks to divide the runs among [default: one task per run]",
    ),
}


def slurm_options(command: Callable) -> Callable:
    """Return `command` with the options of a batch job."""
    return _with(OPTIONS, command)


def array_options(command: Callable) -> Callable:
    """Return `command` with the options of a job array."""
    return _with(OF_ARRAYS, command)


def _with(options: dict[str, Callable], command: Callable) -> Callable:
    for option in reversed(options.values()):
        command = option(command)
    return command


def batch_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the given options of a batch job, or {} if the command runs on this machine. Raise ValueError if they
    cannot be obeyed.
    """
    job = {name: given[name] for name in {**OPTIONS, **OF_ARRAYS} if given.get(name) not in (None, False)}
    if job and "to" not in job:
        raise ValueError(f"--{next(iter(job))} only applies to a batch job; add --to slurm, or remove it.")
    if "time" in job and not LIMIT.fullmatch(job["time"]):
        raise ValueError(
            f"time is {job['time'][:40]!r}; write minutes, as in 10, or [days-]hours:minutes:seconds, as in 1:00:00."
        )
    if "submit" in job and shutil.which("sbatch") is None:
        raise ValueError(
            "--submit needs sbatch, which was not found here; log in to a cluster node, or remove --submit to print "
            "the script only."
        )
    return job


def script(experiment: Experiment, job: dict[str, Any], *more: str) -> str:
    """Return the batch script that runs `experiment`, one task per rank; `more` is added to its command line."""
    name, nodes, ranks = experiment.algorithm, job.get("nodes", 1), experiment.ranks
    if nodes > ranks:
        raise ValueError(f"{nodes} nodes are too many for {ranks} ranks; use at most {ranks}.")
    if nodes > 1 and algorithms.family(name) == "shared_memory":
        raise ValueError(f"{name} needs memory shared by all its ranks, so it cannot span {nodes} nodes; use 1 node.")
    lines = {"job-name": name, "nodes": nodes, "ntasks": ranks}
    if experiment.cluster == "gpus":
        lines["gpus-per-node"] = -(-ranks // nodes)  # all tasks of a node see them; rank r takes GPU number r
    lines |= {name: job[name] for name in ("time", "partition", "account") if name in job}
    lines["output"] = f"{name}-%j.out"
    words = [sys.executable, "-m", "experiments", *shlex.split(experiment.command())[1:], *more]
    return SCRIPT.format(**_head(lines), command=shlex.join(words))


def array_script(experiments: Sequence[Experiment], job: dict[str, Any], *more: str) -> str:
    """Return the batch script of a job array that runs the experiments; `more` is added to each command line.

    Raise ValueError if one of them needs a real cluster, whose ranks would be tasks of their own.
    """
    if real := next((one for one in experiments if one.cluster != "simulated"), None):
        raise ValueError(
            f"cluster: a job array runs simulated experiments, but {real.cluster} was given; submit each real run with "
            "lockstep run --to slurm."
        )
    tasks = min(job.get("array", len(experiments)), len(experiments))
    lines = {"job-name": "sweep", "array": f"0-{tasks - 1}", "ntasks": 1}
    lines |= {name: job[name] for name in ("time", "partition", "account") if name in job}
    lines["output"] = "sweep-%A_%a.out"
    command = shlex.join([sys.executable, "-m", "experiments", "run", *more])
    words = [shlex.join(shlex.split(one.command())[2:]) for one in experiments]
    return ARRAY.format(
        **_head(lines), tasks=tasks, count=len(words), command=command, points="\n".join(map(shlex.quote, words))
    )


def _head(lines: dict[str, Any]) -> dict[str, str]:
    """Return the beginning of a batch script: the resources that it requests from SLURM, and its environment."""
    return {
        "asked": "\n".join(f"#SBATCH --{option}={shlex.quote(str(value))}" for option, value in lines.items()),
        "root": shlex.quote(str(ROOT)),
        "one_thread": " ".join(f"{name}=1" for name in ONE_THREAD),
    }


def queue(text: str, job: dict[str, Any], runs: str, then: str) -> int:
    """Print a batch script, or submit it if `job` says so. Return the exit code.

    After submitting it, print the job's number, how to watch and stop the job, and `then`, with %j replaced by the
    number. Raise ValueError if the script is rejected, or if `runs` cannot be written to.
    """
    if "submit" not in job:
        click.echo(text, nl=False)
        return 0
    check_writable(runs)
    number = submit(text)
    click.echo(f"job {number}: squeue --job {number} shows it, scancel {number} stops it")
    click.echo(then.replace("%j", number))
    return 0


def submit(text: str) -> str:
    """Submit a batch script and return the job's number. Raise ValueError if it is rejected."""
    done = subprocess.run(["sbatch", "--parsable"], input=text, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise ValueError(f"sbatch rejected the job: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}.")
    return done.stdout.strip().partition(";")[0]
