"""One run: an Experiment specifies it, `run` makes it, a Run holds all that was recorded.

Experiment (frozen, validated, one JSON, one URL, one command line) -> run() -> Run -> store, compare, export.

    experiment.py  run.py     what to run, and how a run is made
    catalogue.py              what experiments are made of: algorithms, compressions, workloads, presets
    runs/       records of runs: figures, evaluations, files, folders, comparisons, uploads
    jobs/       runs and other work in processes of their own
    measure/    this machine: kernels, messages, the layers of a model
    study/      schedules and partitions without training
    plots/      palette, pictures of curves, exports, charts of rows
    cli/        the command line, a file per command
"""
