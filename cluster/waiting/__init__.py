"""Who and what ranks wait for, derived from a trace.

causes.py    the cause of each wait, and the critical path
lanes.py     the spans, rank by rank, with what ended each wait
pieces.py    the walk back from the end of a wait, which accounts for its length
"""
