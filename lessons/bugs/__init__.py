"""Find the bug: diagnose mutants of the algorithm modules by their curves and timelines.

The reader sees a healthy run and a mutant's run, and names first what is wrong, then the line. The mutants are in
`mutants.toml`. Their recorded runs are in `golden.json`, so that a page runs nothing.
"""
