"""The command line of the textbook, a file for each of its rooms."""
