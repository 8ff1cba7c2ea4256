"""Which functions a source file of a tree defines, as its compiled object has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from iolab.machines.guest import tree
from iolab.machines.system import command
from iolab.machines.system.command import CommandFailed

_CODE = frozenset("tTwW")
HEADERS = (".h", ".inc")


def functions_of(path: Path, config: str | None, files: Sequence[str]) -> dict[str, set[str]]:
    """The functions of each of the files, by the objects of the last build of this configuration. A header has those of
    all objects that include it. Empty for what is not built.

    Raises:
        MachineError: there is no nm.
    """
    objects = tree.objects(path, config)
    headers = [file for file in files if file.endswith(HEADERS)]
    including = _including(objects, headers) if headers else {}
    found: dict[str, set[str]] = {}
    for file in files:
        sources = including.get(file, []) if file.endswith(HEADERS) else [(objects / file).with_suffix(".o")]
        found[file] = {name for one in sources if one.is_file() for name in _defined(one)}
    return found


def _defined(compiled: Path) -> Iterator[str]:
    try:
        listed = command.run(["nm", "--defined-only", str(compiled)], package="binutils", where=str(compiled))
    except CommandFailed:
        return
    for line in listed.splitlines():
        kind, _, name = line.strip().partition(" ")[2].partition(" ")
        if kind in _CODE:
            yield name


def _including(objects: Path, headers: Sequence[str]) -> dict[str, list[Path]]:
    """By header, the objects that include it: kbuild keeps the dependencies of NAME.o in .NAME.o.cmd."""
    found: dict[str, list[Path]] = {header: [] for header in headers}
    for record in objects.rglob(".*.o.cmd"):
        compiled = record.with_name(record.name.removeprefix(".").removesuffix(".cmd"))
        words = {word.rstrip("\\)") for word in record.read_text(errors="replace").split()}
        for header in headers:
            if any(word.endswith(f"/{header}") for word in words):
                found[header].append(compiled)
    return found
