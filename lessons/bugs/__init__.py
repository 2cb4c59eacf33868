"""Find the bug: mutants of the algorithm modules, diagnosed by their curves and timelines.

The reader sees a healthy run and a mutant's, and names first what is wrong, then the line. The mutants are in
`mutants.toml`. Their recorded runs are in `golden.json`, so that a page runs nothing.
"""
