"""What a run leaves behind: its record, its files, and comparisons between records."""
