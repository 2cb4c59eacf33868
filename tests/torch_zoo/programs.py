"""The programs by name, and those that gloo cannot run."""

from tests.torch_zoo import data_parallel, model_parallel, pipelines, sharded

PROGRAMS = {
    program.__name__: program
    for programs in (data_parallel.PROGRAMS, sharded.PROGRAMS, model_parallel.PROGRAMS, pipelines.PROGRAMS)
    for program in programs
}
NOT_ON_GLOO = {program.__name__: (program, why) for program, why in data_parallel.NOT_ON_GLOO.items()}
"""Programs that this torch runs on GPUs only, each with the words of its error."""
