"""Find the bug: mutants of the algorithm modules, diagnosed by their curves and timelines.

The reader sees a healthy run and that of a mutant, names what is wrong, and then the line. `mutants.toml` has them,
`golden.json` their recorded runs, so that nothing has to run for a page.
"""
