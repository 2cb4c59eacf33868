"""Find the bug: mutants of the algorithm modules, diagnosed by their curves and timelines.

The reader sees a healthy run and that of a mutant, names what is wrong, and then the line. The mutants are in
`mutants.toml`, their recorded runs in `golden.json`, so that a page runs nothing.
"""
