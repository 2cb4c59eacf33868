"""Pictures alone, for slides and other people's pages."""
