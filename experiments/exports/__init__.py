"""Exports: runs and figures as files that need no Lockstep: tables, charts, pages, traces."""
