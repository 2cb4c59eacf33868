"""Experiments: an Experiment specifies a run, `run` executes it, a Run holds everything that was recorded.

Experiment (frozen, validated; as JSON, URL or command line) -> run() -> Run -> store, compare, export.

    specification/  what to run: the experiment, its faults, the catalogue of choices
    wording/        how numbers, experiments, ranks and places are written
    runs/           records of runs: figures, evaluations, causes of waits, files, folders
    execution/      how an experiment is run, and what is checked first
    jobs/           runs and other work, each in its own process
    measure/        this machine: kernels, messages, the layers of a model
    study/          schedules, partitions and rates
    learning/       a run replayed, to see what it learned
    viewer/         pictures for a browser: canvases and what they draw
    exports/        files that need no Lockstep: tables, charts, pages, traces
    cli/            the command line, a file per command; notebook.py, the same in a notebook

Each room imports only rooms above it in this list.

`import lockstep` (lockstep.py) is the entry point for scripts and notebooks.
"""
