"""The pages of the workbench; each file reads in the order of its page."""
