"""Where kernels are kept between runs, and what is known of them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def directory(*names: str, make: bool = True) -> Path:
    """`$XDG_CACHE_HOME/iolab/kernels`, or ~/.cache/iolab/kernels, and a directory below it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    path = root.joinpath("iolab", "kernels", *names)
    if make:
        path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def filled(target: Path) -> Iterator[Path]:
    """A new directory that becomes `target` once it is filled; whoever comes second throws its own away."""
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        made.chmod(0o755)
        yield made
        if not target.exists():
            made.rename(target)
    finally:
        shutil.rmtree(made, ignore_errors=True)
