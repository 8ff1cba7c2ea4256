"""A git repository of one commit, made of an archive."""

from __future__ import annotations

import lzma
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from iolab.base import child_process
from iolab.base.errors import MachineError
from iolab.machines.system import command, git

BRANCH = "main"
_UNREADABLE = (OSError, EOFError, tarfile.TarError, lzma.LZMAError)


def commit(archive: Path, directory: Path, subject: str) -> None:
    """Makes a repository of the directory, with the files below the archive's top directory as its only commit and
    nothing checked out. The same archive makes the same commit. `archive`: a .tar.xz.

    Raises:
        MachineError: git is not installed, or the archive cannot be read.
    """
    git.Repository(directory).begin(BRANCH)
    words = ["fast-import", "--quiet", "--done", "--depth=0"]  # deltas between files take minutes
    process = subprocess.Popen(
        [*git.words({"pack.compression": "1"}), "-C", str(directory), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**child_process.environment(), **git.VARIABLES, "LC_ALL": "C"},
        start_new_session=True,
        preexec_fn=command.dying_with_parent(),
    )
    assert process.stdin is not None and process.stderr is not None
    try:
        with suppress(BrokenPipeError):  # git has a reason, which is reported below
            for part in _stream(archive, subject):
                process.stdin.write(part)
            process.stdin.close()
        said = process.stderr.read().decode(errors="replace")
    except BaseException as error:
        process.kill()
        process.wait()
        if isinstance(error, _UNREADABLE):
            raise MachineError(f"no whole archive of source: {error}", where=str(archive)) from None
        raise
    if process.wait() != 0:
        raise MachineError(f"git refuses it: {said.strip().partition(chr(10))[0]}", where=str(archive))


def _stream(archive: Path, subject: str) -> Iterator[bytes]:
    """As git fast-import reads it."""
    with lzma.open(archive) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as files:
        for number, member in enumerate(files):
            if number == 0:
                author = f"{git.AUTHOR['user.name']} <{git.AUTHOR['user.email']}>"
                yield f"commit refs/heads/{BRANCH}\ncommitter {author} {int(member.mtime)} +0000\n".encode()
                yield _data(subject.encode())
            path = member.name.removeprefix("./").partition("/")[2]
            if member.issym():
                yield b"M 120000 inline %b\n%b" % (_quoted(path), _data(member.linkname.encode()))
            elif member.isfile():
                content = files.extractfile(member)
                assert content is not None
                mode = b"100755" if member.mode & 0o100 else b"100644"
                yield b"M %b inline %b\n%b" % (mode, _quoted(path), _data(content.read()))
            elif not member.isdir():
                raise tarfile.TarError(f"{member.name} is neither a file, a directory nor a link")
        unpacked.read()  # to its checksum: tarfile takes an early end for the end
    yield b"done\n"


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _quoted(path: str) -> bytes:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'.encode(errors="surrogateescape")
