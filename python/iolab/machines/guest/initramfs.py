"""The archive that a guest's kernel unpacks as its first filesystem: cpio's format newc
(the kernel's Documentation/driver-api/early-userspace/buffer-format.rst)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

_DIRECTORY = 0o040755
_PROGRAM = 0o100755
_LINK = 0o120777


@dataclass
class Archive:
    """Files by their absolute path in the guest; the same files make the same bytes."""

    _entries: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def add(self, path: str, content: bytes) -> None:
        """A file, which may be executed, with the directories above it."""
        self._add(path, _PROGRAM, content)

    def add_link(self, path: str, target: str) -> None:
        """A symbolic link."""
        self._add(path, _LINK, target.encode())

    def __contains__(self, path: str) -> bool:
        return path.lstrip("/") in self._entries

    def packed(self) -> bytes:
        """The archive."""
        found = [_entry(number, path, *entry) for number, (path, entry) in enumerate(self._entries.items(), 1)]
        return b"".join([*found, _entry(0, "TRAILER!!!", 0, b"")])

    def _add(self, path: str, mode: int, content: bytes) -> None:
        name = path.lstrip("/")
        for parent in reversed(PurePosixPath(name).parents[:-1]):
            self._entries.setdefault(str(parent), (_DIRECTORY, b""))
        self._entries[name] = (mode, content)


def _entry(number: int, path: str, mode: int, content: bytes) -> bytes:
    name = path.encode() + b"\0"
    links = 2 if mode == _DIRECTORY else 1
    numbers = (number, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % each for each in numbers)
    return _padded(header + name) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)
