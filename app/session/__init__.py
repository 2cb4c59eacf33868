"""A reader's session: runs under way, pinned runs, polls, and the link to what is on the page."""
