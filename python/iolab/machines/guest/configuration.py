"""What a kernel of a tree is configured as: plain.config, which is what distributions run, or a user's file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from iolab.base.bounded_file import MIB, is_file, read_bounded
from iolab.base.errors import InputError
from iolab.machines.guest.kernel_paths import path_of

PLAIN = "plain"
"""The name of ours."""
OF_TREE = "iolab-guest.config"
"""A file of this name at the tree's top is taken if the experiment names none."""
_PLAIN = Path(__file__).with_name("plain.config")
_NEEDED = Path(__file__).with_name("kernel.config")
_IS_WHOLE = re.compile(rb"^CONFIG_CC_VERSION_TEXT=", re.MULTILINE)
_LINE = re.compile(rb"(?:#.*|CONFIG_\w+=.*|)")


@dataclass(frozen=True)
class Configuration:
    """Options of a kernel, and how the rest is found."""

    name: str
    """`plain`, or the file's path."""
    options: bytes
    is_whole: bool
    """Whether a kernel's build wrote it (`.config`), so that it has all options; else an option that it leaves out is
    off."""

    @property
    def digest(self) -> str:
        """The digest of the input of a kernel's build."""
        return blake2b(self.options, digest_size=8, key=b"whole" if self.is_whole else b"").hexdigest()


def find(named: str | None, tree: Path) -> Configuration:
    """The one that the experiment names; else the tree's own, else ours. A whole `.config` is taken as it is, lines of
    another file change ours; what a guest machine needs is added to either.

    Raises:
        InputError: there is no such file, or it is none of a kernel's configuration.
    """
    path = tree / OF_TREE if named is None and (tree / OF_TREE).exists() else None
    if named not in (None, PLAIN):
        path = path_of(str(named), "guest.config")
        if not is_file(path):
            remedy = f'expected "{PLAIN}", or the path of a kernel\'s .config'
            raise InputError(f"no such configuration: {named}", where="guest.config", remedy=remedy)
    needed = _NEEDED.read_bytes()
    if path is None:
        return Configuration(PLAIN, _PLAIN.read_bytes() + needed, is_whole=False)
    given = _read(path)
    is_whole = _IS_WHOLE.search(given) is not None
    return Configuration(str(path), (b"" if is_whole else _PLAIN.read_bytes()) + given + needed, is_whole)


def compiler(config: Path) -> str | None:
    """The compiler that the kernel with this .config was built by; None: the .config does not name it."""
    if not config.exists():
        return None
    found = re.search(rb'^CONFIG_CC_VERSION_TEXT="(.*)"$', read_bounded(config, MIB, "a configuration"), re.MULTILINE)
    return found[1].decode(errors="replace") if found else None


def _read(path: Path) -> bytes:
    """Its lines, however they end."""
    lines = read_bounded(path, MIB, "a kernel's configuration").splitlines()
    for number, line in enumerate(lines, 1):
        if not _LINE.fullmatch(line.strip()):
            text = line.decode(errors="replace").strip()[:60]
            raise InputError(f"{text!r} is no line of a kernel's configuration", where=f"{path}:{number}")
    return b"".join(line.strip() + b"\n" for line in lines)
