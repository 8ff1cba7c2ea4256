"""Writes python/iolab/domain/workload/fio_file/options.json: the names of fio's options and engines.

With them an error can tell an option that fio has and iolab has not from one that nobody has.

Needs fio and its manual (Debian: fio). `python tools/fio_options.py`
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path

OUT = Path(__file__).parents[1] / "python/iolab/domain/workload/fio_file/options.json"
MANUAL = Path("/usr/share/doc/fio/HOWTO.rst.gz")


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
    found = {
        "source": f"{fio('--version').strip()}: --cmdhelp=all, --enghelp of each engine, and the options of HOWTO.rst",
        "engines": sorted(engines),
        "options": dict(sorted(aliases.items())),
    }
    OUT.write_text(json.dumps(found, indent=1) + "\n")


def fio(*arguments: str) -> str:
    return subprocess.run(["fio", *arguments], capture_output=True, text=True, check=False).stdout


def listed(text: str) -> list[str]:
    return re.findall(r"^\s*([\w-]+)\s*: ", text, re.M)


def aliases_in(text: str) -> list[str]:
    return re.findall(r"alias: (\S+)", text)


if __name__ == "__main__":
    main()
