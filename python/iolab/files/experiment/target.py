"""The table [target] of an experiment."""

from __future__ import annotations

from iolab.base.errors import unknown
from iolab.base.problem import Problems
from iolab.base.toml import TomlTable
from iolab.domain.trial import Target
from iolab.files.experiment import filesystems, layers
from iolab.files.experiment.options import TARGETS, DeviceOptions, ScratchOptions


def read_target(table: TomlTable, default: str, problems: Problems) -> Target | None:
    """The target, of kind `default` unless the table names another; None with what is wrong noted."""
    kind = table.get("kind", default)
    if kind not in TARGETS:
        problems.add(("target", "kind"), f"{kind!r}: {unknown('target', str(kind), TARGETS)}")
        return None
    options = problems.validated(TARGETS[kind], table, ("target",), f"target {kind}")
    if isinstance(options, DeviceOptions) and (fault := _device_fault(options)):
        problems.add(("target", "path" if options.paths is None else "paths"), fault)
        return None
    if isinstance(options, ScratchOptions):
        filesystems.check_sides_given(options, problems)
        if not layers.check_given(options, problems):
            return None
    return options.target() if options else None


def _device_fault(options: DeviceOptions) -> str | None:
    if options.path is not None and options.paths is not None:
        return "path is given too; keep one of the two"
    if options.path is None and not options.paths:
        return 'missing; expected a path such as "/dev/nvme1n1", or several in paths'
    if len(set(options.paths or ())) < len(options.paths or ()):
        return "the same device twice"
    return None
