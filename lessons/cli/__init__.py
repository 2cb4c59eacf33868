"""The textbook's command line: one file per group of commands."""
