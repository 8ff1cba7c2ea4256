"""Executes docs/notebook.ipynb and stores what its cells show: run this when its test reports it.

Its runs are on a simulated machine with a seed, so that everybody's are the same. Cells are executed in an empty
directory, and the kernel is spoken to through files there, not through ports that another process could take.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "notebook.ipynb"
STARTUP_LIMIT_S = 300
CELL_LIMIT_S = 300


def main() -> int:
    """Rewrites the notebook."""
    executed = execute(nbformat.read(NOTEBOOK, as_version=4))
    nbformat.write(executed, NOTEBOOK)
    print(f"executed {NOTEBOOK.name}: {len(executed.cells)} cells")
    return 0


def execute(notebook: Any) -> Any:
    """The notebook with fresh outputs. nbclient.exceptions.CellExecutionError if a cell fails."""
    with tempfile.TemporaryDirectory(prefix="iolab-nb-") as made:
        kernel = f"{made}/kernel"
        manager = KernelManager(transport="ipc", ip=kernel, connection_file=f"{kernel}.json", kernel_name="python3")
        # This Python, whatever kernels are installed beside it.
        spec = manager.kernel_spec
        assert spec is not None, "ipykernel brings one"
        spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (Path(made) / "work").mkdir()
        client = NotebookClient(
            notebook,
            km=manager,
            timeout=CELL_LIMIT_S,
            startup_timeout=STARTUP_LIMIT_S,
            resources={"metadata": {"path": f"{made}/work"}},
            record_timing=False,
        )
        try:
            executed = client.execute(env={**os.environ, "IPYTHONDIR": f"{made}/ipython", "JUPYTER_RUNTIME_DIR": made})
        finally:
            manager.shutdown_kernel(now=True)
    for number, cell in enumerate(executed.cells):
        cell["id"] = f"cell-{number}"
    executed.metadata.pop("widgets", None)
    return executed


if __name__ == "__main__":
    sys.exit(main())
