"""Where a trial's I/O goes, and what it shares with other runs there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import CoreSchema, core_schema

from iolab.base.strict_json import JsonObject
from iolab.domain import layer


class Spec(BaseModel):
    """What crosses from one process to another: known keys only, never changed once made."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class _Document:
    """The schema of a field whose type is a TypedDict: any table of JSON is accepted, because Rust checks it."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.dict_schema(core_schema.str_schema())


DOCUMENT = _Document()
"""`Annotated[T, DOCUMENT]`: T states what is in it, to readers and to mypy."""

Reach = Literal["queue", "machine"]
"""What a control or a phase changes that other runs share: the settings of the queues of the target's devices, or
those of the machine as a whole. Whoever changes it holds its lock (`iolab.machines.system.lock`)."""


class SideDevice(Spec):
    """A scratch device beside another, for a filesystem's log or its realtime section."""

    size_bytes: int
    backing_directory: str | None
    """Where its sparse file lies; None: where the other's does."""


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
    devices: int = 1
    """How many of them."""
    log: SideDevice | None = None
    """Each has one of its own."""
    realtime: SideDevice | None = None
    layers: list[JsonObject] = Field(default_factory=list, exclude_if=lambda layers: not layers)
    """Between each device and its drives, the top one first: tables as an experiment has them
    (iolab.domain.layer)."""

    @property
    def drives(self) -> int:
        """How many drives all of its devices lie on."""
        return self.devices * layer.drives(layer.read(self.layers))

    @property
    def drive_bytes(self) -> int:
        """The size of each drive, in bytes."""
        return layer.drive_bytes(layer.read(self.layers), self.size_bytes)

    def holds(self, path: str) -> bool:
        """Whether an absolute path is the target or lies in it; nobody can name what iolab makes for itself."""
        return False


class DirectoryTarget(Spec):
    """An existing directory; iolab makes, uses and removes a directory of its own inside."""

    kind: Literal["directory"] = "directory"
    path: str

    @property
    def devices(self) -> int:
        """A directory counts as one device, whatever lies under it."""
        return 1

    def holds(self, path: str) -> bool:
        """Whether `path`, with links followed, lies in the directory."""
        return Path(self.path).resolve() in Path(path).resolve().parents


class FileTarget(Spec):
    """An existing or new file that is read and written in place."""

    kind: Literal["file"] = "file"
    path: str

    def holds(self, path: str) -> bool:
        """Whether `path`, with links followed, is the file."""
        return Path(path).resolve() == Path(self.path).resolve()

    @property
    def devices(self) -> int:
        """A file counts as one device, whatever lies under it."""
        return 1


class DeviceIdentity(Spec):
    """What a device was known by when a run took it (python/iolab/machines/system/device_identity.py)."""

    path: str
    """As the user named it; a name may lead elsewhere later."""
    name: str
    """The kernel's."""
    number: tuple[int, int]
    """Major and minor, as good as the boot."""
    sequence: int | None
    """Counts what the kernel attached since it was started; None: a kernel before 5.15."""
    boot_id: str
    size_bytes: int
    start_bytes: int | None
    """The start of a partition on its disk."""
    serial: str | None
    signatures: list[tuple[str, str | None]]
    """Type and UUID of each that was on it."""


class DeviceTarget(Spec):
    """Whole block devices or partitions, whose contents are overwritten."""

    kind: Literal["device"] = "device"
    paths: list[str]
    destroy: bool
    """The one explicit flag of rule 7: overwrite although a device carries signatures, partitions or other data."""
    admitted: list[DeviceIdentity] | None = None
    """The devices as the run took them, in the order of `paths`; None: not yet, what they hold is looked at."""

    @property
    def with_identities(self) -> list[tuple[str, DeviceIdentity | None]]:
        """Each path, with what its device is known by."""
        known: Sequence[DeviceIdentity | None] = self.admitted or [None] * len(self.paths)
        return list(zip(self.paths, known, strict=True))

    @property
    def devices(self) -> int:
        """How many devices the target has."""
        return len(self.paths)

    def holds(self, path: str) -> bool:
        """Whether `path`, with links followed, is one of the devices' nodes."""
        return any(Path(path).resolve() == Path(own).resolve() for own in self.paths)

    @model_validator(mode="before")
    @classmethod
    def _one_path(cls, given: Any) -> Any:
        """Trials written before there could be several devices have a `path`."""
        if isinstance(given, dict) and "path" in given:
            rest = {key: value for key, value in given.items() if key != "path"}
            return {"paths": [given["path"]], **rest}
        return given


class DrivesTarget(Spec):
    """The drives of a simulated machine."""

    kind: Literal["drives"] = "drives"
    devices: int

    def holds(self, path: str) -> bool:
        """Any name will do: nothing of this machine is touched."""
        return True


Target = Annotated[
    ScratchTarget | DirectoryTarget | FileTarget | DeviceTarget | DrivesTarget, Field(discriminator="kind")
]
