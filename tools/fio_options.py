"""Writes python/iolab/domain/workload/fio_file/options.json: the names of fio's options and engines.

With them an error can tell an option that fio has and iolab has not from one that nobody has.

Needs the newest fio and its manual: `python tools/fio_options.py [FIO [HOWTO.rst.gz]]`, by default those of Debian's
package. What an older fio had and this one has not stays in the file: job files outlive versions.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

OUT = Path(__file__).parents[1] / "python/iolab/domain/workload/fio_file/options.json"
FIO = sys.argv[1] if len(sys.argv) > 1 else "fio"
MANUAL = Path(sys.argv[2] if len(sys.argv) > 2 else "/usr/share/doc/fio/HOWTO.rst.gz")


def main() -> None:
    engines = re.findall(r"^\t(\S+)$", fio("--enghelp"), re.M)
    names = listed(fio("--cmdhelp=all"))
    aliases = {name: aliases_in(fio(f"--cmdhelp={name}")) for name in names}
    for engine in engines:
        for name in listed(fio(f"--enghelp={engine}")):
            aliases.setdefault(name, aliases_in(fio(f"--enghelp={engine},{name}")))
    known = {name for name, others in aliases.items() for name in (name, *others)}
    manual = gzip.decompress(MANUAL.read_bytes()).decode()
    written = re.findall(r"^\.\. option:: (.*)$", manual, re.M)
    for line in written:
        for name in re.findall(r"(?:^|, )([a-z][\w-]*)=?", line):
            if name not in known:
                aliases[name] = []
    # A name that was an option's own stays it: an older fio knows it by no other.
    before = json.loads(OUT.read_text())
    aliases = {name: [other for other in others if other not in before["options"]] for name, others in aliases.items()}
    taken = {name for name, others in aliases.items() for name in (name, *others)}
    for name, others in before["options"].items():
        if name not in taken:
            aliases[name] = [other for other in others if other not in taken]
    found = {
        "version": fio("--version").strip().replace("-", " "),
        "source": "--cmdhelp=all, --enghelp of each engine, and the options of HOWTO.rst; and those of older versions",
        "engines": sorted({*engines, *before["engines"]}),
        "options": dict(sorted(aliases.items())),
    }
    OUT.write_text(json.dumps(found, indent=1) + "\n")


def fio(*arguments: str) -> str:
    return subprocess.run([FIO, *arguments], capture_output=True, text=True, check=False).stdout


def listed(text: str) -> list[str]:
    return re.findall(r"^\s*([\w-]+)\s*: ", text, re.M)


def aliases_in(text: str) -> list[str]:
    return re.findall(r"alias: (\S+)", text)


if __name__ == "__main__":
    main()
