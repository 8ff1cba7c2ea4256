"""The paths that run code which a change touches, by the functions that the changed files define."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from iolab.base import strict_json
from iolab.base.bounded_file import MIB, read_bounded
from iolab.base.durable import write_atomically
from iolab.base.errors import InputError, MachineError
from iolab.domain.cost.hits import hits, representatives
from iolab.domain.executor import Display, Executor
from iolab.files.store import read
from iolab.machines.guest import cache, kernel
from iolab.machines.guest.source_functions import functions_of
from iolab.studies import run as runs
from iolab.studies.cost.kernels import Versions
from iolab.studies.cost.paths import SuitePath, experiment_of, text_of
from iolab.studies.cost.suite import executed

FOLDER = "cost"
PATHS_MAX = 12
"""As many as a table of one screen has, and as two CPUs count in ten minutes under two kernels, builds included."""
_FUNCTIONS_MAX_BYTES = 16 * MIB
CODE = (".c", ".h", ".S", ".inc")


@dataclass(frozen=True)
class Selection:
    """The paths that are taken, and why."""

    paths: list[SuitePath]
    notes: list[str]


def selected(
    versions: Versions, paths: Sequence[SuitePath], config: str | None, *, executor: Executor, progress: Display
) -> Selection:
    """The paths of which the base executes a function that a changed file defines, at most `PATHS_MAX` that stand for
    all. A path's functions are counted in one boot of the base, and kept in the cache.

    Raises:
        InputError: no tree is given, or no path runs any of that code.
    """
    if versions.tree is None:
        raise InputError(
            "which files change is known of a series or a range of commits only",
            where="--auto",
            remedy="give --git TREE",
        )
    files = [file for file in versions.files if file.endswith(CODE)]
    defined = functions_of(versions.tree, config, files)
    unbuilt = sorted(file for file, functions in defined.items() if not functions)
    notes = [f"not built in this configuration, or without functions: {', '.join(unbuilt)}"] if unbuilt else []
    if len(unbuilt) == len(files):
        what = f"none of the {len(versions.files)} changed files has functions in this configuration"
        raise InputError(what, where="--auto", remedy="give --config, or choose --paths")
    known = {path.name: _functions(versions, path, config, executor, progress) for path in paths}
    found = hits(known, defined)
    if not found:
        what = f"no path runs a function of {', '.join(file for file in files if file not in unbuilt)}"
        raise InputError(what, where="--auto", remedy="choose --paths")
    touched = sorted({file for of_path in found.values() for file in of_path})
    taken = representatives(found, PATHS_MAX)
    note = f"{len(found)} of {len(paths)} paths run functions of {', '.join(touched)}"
    if left := sorted(set(found) - set(taken)):
        note += f"; not counted: {', '.join(left)} (choose them with --paths)"
    return Selection([path for path in paths if path.name in taken], [note, *notes])


def _functions(
    versions: Versions, path: SuitePath, config: str | None, executor: Executor, progress: Display
) -> set[str]:
    """Empty for a path that the base cannot run."""
    text = text_of(path, [versions.base], 1, config, memory=False)
    identity = kernel.find(versions.base.kernel, config=config).identity()
    digest = blake2b(f"{identity} {path.file.read_text()}".encode(), digest_size=16).hexdigest()
    place = cache.directory(FOLDER) / f"{path.name}-{digest}.json"
    if place.exists():
        return set(strict_json.loads(read_bounded(place, _FUNCTIONS_MAX_BYTES, "a list of functions")))
    progress.report_line(f"which functions {path.name} runs: counted once for this base")
    with tempfile.TemporaryDirectory(prefix="iolab-cost-") as directory:
        try:
            done = runs.run(
                experiment_of(text, path.name), Path(directory) / "run", executor=executor, progress=progress, rounds=1
            )
            found = executed(read(done.path))
        except MachineError:
            return set()
    write_atomically(place, strict_json.dumps(sorted(found)).encode())
    return found
