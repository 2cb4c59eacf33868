"""Experiments that a page of the static book computes itself, in the reader's browser.

    distribution.py  Python for WebAssembly: Pyodide and NumPy, one release, checked by hash
    bytecode.py      what a browser need not compile, if there is a Python 3.12
    archive.py       Python, NumPy and Lockstep's sources, compressed, as scripts that a page on a disk may load
    tries.py         the settings of *Try it here*, below a timeline or a figure
    fields.py        each of these settings as a field of a form
    python/          what runs in the browser only: engine.py, which answers the page, and a small pydantic
    browser/         JavaScript: client.js and worker.js, which compute; the others, which ask

A page loads nothing of this before the reader presses a button. Then it loads `assets/live/*.js`, hands them to a Web
Worker, and asks it: Python runs there, so the page stays responsive. Ranks of the simulated cluster suspend one another
by JavaScript Promise Integration, which Chrome and Edge have.
"""
