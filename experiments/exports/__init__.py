"""Runs and figures as files that do not need Lockstep: tables, charts, pages, traces."""
