"""The browser and Streamlit: what the workbench adds to a page, and all code that depends on Streamlit's internals.

Everything that Streamlit may change without notice (private modules, test ids, classes of its elements, names of its
scripts, its cookie, the way it listens) is used only in this room. Each file says what it relies on and what is lost
without it. After an update of Streamlit, read these docstrings and run `pytest tests/system/app`.

    opening assets server           what a browser loads first; opening.js answer.js drawer.js help.js printing.js
    kinds looks                     elements and looks; style.css
    chrome storage presentation     scripts that report to the session, see scripts.py; view.js coach.js
    cookies                         who a reader is
    address                         choices that stand in the page's address
    components frames text          canvases, tables and messages on a page
    serve                           the workbench as a process
"""
