"""A C source tree for `make`, the same for the same size: for whoever has no tarball at hand."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from iolab.base.errors import MachineError
from iolab.machines.system import state

VERSION = 1
"""The version of the contents: a tree that was kept is used again only for the same version."""
FILES_PER_DIRECTORY = 50
MODIFIED_UNIX_S = 1_000_000_000

MAKEFILE = """\
CC = cc
CFLAGS = -O2
OBJECTS := $(patsubst %.c,%.o,$(wildcard src/*/*.c))

tree: $(OBJECTS)
\t$(file >objects,$(OBJECTS))
\t$(CC) -o $@ @objects

%.o: %.c include/tree.h
\t$(CC) $(CFLAGS) -Iinclude -c -o $@ $<

clean:
\tfind src -name '*.o' -delete
\trm -f tree objects

.PHONY: clean
"""

HEADER = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t mix(uint64_t value, unsigned shift);
"""

MAIN = """\
#include "tree.h"

uint64_t mix(uint64_t value, unsigned shift) { return value ^ (value >> shift) ^ (value << (63 - shift)); }

int main(void) { return puts("built") == EOF; }
"""


def tarball(*, files: int, functions: int) -> Path:
    """A gzipped tarball of a tree with `files` C files of `functions` functions each, which `make` builds into one
    program. Kept in the state directory, so that a run packs it once.

    Raises:
        MachineError: it cannot be written.
    """
    directory = state.state_subdirectory("source-trees")
    path = directory / f"{files}-files-{functions}-functions-v{VERSION}.tar.gz"
    if path.exists():
        return path
    try:
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
            file.write(_packed(files, functions))
        Path(file.name).replace(path)
    except OSError as error:
        raise MachineError(f"cannot write the source tree: {error.strerror}", where=str(path)) from error
    return path


def members(files: int, functions: int) -> Iterator[tuple[str, str]]:
    """Path and contents of every file of the tree."""
    yield "Makefile", MAKEFILE
    yield "include/tree.h", HEADER
    yield "src/00/main.c", MAIN
    for number in range(files):
        name = f"src/{number // FILES_PER_DIRECTORY:02d}/unit_{number:05d}.c"
        yield name, _unit(number, functions)


def _packed(files: int, functions: int) -> bytes:
    buffer = io.BytesIO()
    # A name or a time inside would make equal trees differ.
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, text in members(files, functions):
            content = text.encode()
            info = tarfile.TarInfo(f"tree/{name}")
            info.size, info.mtime = len(content), MODIFIED_UNIX_S
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _unit(number: int, functions: int) -> str:
    draw = random.Random(number)
    parts = ['#include "tree.h"\n', *(_function(number, index, draw) for index in range(functions))]
    return "\n".join(parts)


def _function(unit: int, index: int, draw: random.Random) -> str:
    table = ", ".join(str(draw.randrange(256)) for _ in range(16))
    first, second = draw.getrandbits(32), draw.getrandbits(32)
    return f"""\
uint64_t unit_{unit}_{index}(uint64_t value)
{{
    static const uint8_t table[] = {{ {table} }};
    uint64_t sum = {first}u;
    for (unsigned step = 0; step < {draw.randrange(8, 64)}; step++) {{
        sum = mix(sum * {second}u + value, {draw.randrange(1, 62)});
        sum += table[(sum >> {draw.randrange(1, 30)}) % sizeof table];
    }}
    switch (sum % 3) {{
    case 0: return mix(sum, {draw.randrange(1, 62)});
    case 1: return sum / {draw.randrange(3, 1000)};
    default: return strlen("unit {unit} {index}") + sum;
    }}
}}
"""
