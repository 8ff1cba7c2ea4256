"""docs/notebook.ipynb: each of its cells works, and shows what the stored one shows."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from notebook import NOTEBOOK, execute


def shown(cell: Any) -> list[tuple[str, ...]]:
    """The kinds of what the cell shows; a library's warning is none."""
    outputs = [output for output in cell.get("outputs", []) if output.get("name") != "stderr"]
    return [(output["output_type"], *sorted(output.get("data", {}))) for output in outputs]


def texts(notebook: Any) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(str(output.get("text") or output.get("data", {}).get("text/plain", "")) for output in outputs)


@pytest.mark.long
def test_the_notebook_works_as_it_is_stored(state_dir: Path) -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)
    before = [shown(cell) for cell in stored.cells]
    executed = execute(nbformat.read(NOTEBOOK, as_version=4))
    assert [shown(cell) for cell in executed.cells] == before, "run tools/notebook.py"
    for notebook in (stored, executed):
        assert "Run('depth'" in texts(notebook) and "Comparisons(1: faster)" in texts(notebook)
        assert "did you mean iops?" in texts(notebook)
    kinds = [kind for cell in before for kind in cell]
    assert ("display_data", "application/vnd.plotly.v1+json") in kinds
    assert ("execute_result", "text/html", "text/plain") in kinds
    assert not [kind for kind in kinds if kind[0] == "error"]


def test_a_cell_that_fails_is_told(state_dir: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import iolab; iolab.load('gone')")])
    with pytest.raises(CellExecutionError, match="gone"):
        execute(notebook)
