"""What a run leaves behind: its record, the files it is kept in, and comparisons between records."""
