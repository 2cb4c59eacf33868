#!/usr/bin/env bash
# Gradescope runs this once, when the image is built.
set -e
apt-get update && apt-get install -y python3 python3-venv bubblewrap
python3 -m venv /autograder/venv
/autograder/venv/bin/pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu
/autograder/venv/bin/pip install -r /autograder/source/lockstep/requirements.txt
