"""The example notebooks as they lie in git: without outputs, with the way to install them first."""

import json
from pathlib import Path

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


def test_notebooks_are_kept_without_outputs_and_begin_with_how_to_install():
    assert len(NOTEBOOKS) == 2
    for path in NOTEBOOKS:
        text = path.read_text("utf-8")
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        assert len(text) < 10_000, f"{path.name} is large; clear its outputs"
        assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells), path.name
        assert "Colab" in cells[0]["source"][0] and "pip install" in "".join(cells[0]["source"]), path.name
