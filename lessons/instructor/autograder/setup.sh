#!/usr/bin/env bash
# Gradescope runs this once, when the image is built.
set -e
apt-get update && apt-get install -y python3 python3-venv bubblewrap
python=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then # Ubuntu 22.04 has 3.10, and 3.11 beside it
    apt-get install -y python3.11 python3.11-venv
    python=python3.11
fi
$python -m venv /autograder/venv
/autograder/venv/bin/pip install -r /autograder/source/requirements.txt
