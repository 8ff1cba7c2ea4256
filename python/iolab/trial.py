"""A trial: one workload under one setting, once. A self-contained unit: this specification in, a record out.

Whoever runs it (this process's child, later another host) needs nothing but the JSON of a `Trial`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT = 1


class Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScratchTarget(Spec):
    """A loop device on a sparse file that iolab makes, with a filesystem (or bare), torn down after each trial."""

    kind: Literal["scratch"] = "scratch"
    size_bytes: int
    filesystem: str | None
    """`ext2`, `ext3`, `ext4`, `xfs`, `btrfs`; None: the bare block device."""
    mkfs_options: str
    mount_options: str
    backing_directory: str | None
    """Where the sparse file lies; None: iolab's state directory."""
    sector_bytes: int | None


class DirectoryTarget(Spec):
    """An existing directory; iolab makes, uses and removes a directory of its own inside."""

    kind: Literal["directory"] = "directory"
    path: str


class FileTarget(Spec):
    kind: Literal["file"] = "file"
    path: str


class DeviceTarget(Spec):
    kind: Literal["device"] = "device"
    path: str
    destroy: bool
    """The one explicit flag of rule 7: overwrite although the device carries signatures or partitions."""


Target = Annotated[ScratchTarget | DirectoryTarget | FileTarget | DeviceTarget, Field(discriminator="kind")]


class Phase(Spec):
    """One measured step of a workload. `load` is the engine's phase (crates/engine/src/phase.rs) with paths relative to
    the target's root; the machine makes them absolute."""

    name: str
    measured: bool
    """False for laying out files: run, but no metrics."""
    load: dict[str, Any]


class Trial(Spec):
    format: Literal[1] = FORMAT
    trial: int
    round: int
    position: int
    """Place within the round, from 0."""
    workload: str
    setting: str
    seed: int
    machine: str
    target: Target
    controls: dict[str, Any]
    """The setting's controls by name (python/iolab/control/), validated, units resolved."""
    phases: list[Phase]
