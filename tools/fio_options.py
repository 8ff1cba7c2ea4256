"""Writes python/iolab/domain/workload/fio_file/options.json: the names of fio's options and engines.

With them an error can tell an option that fio has and iolab has not from one that nobody has.

Needs fio's source: `python tools/fio_options.py DIRECTORY VERSION`. All of it counts, also what a build leaves out, as
other builds have it. What the file held before stays in it: job files outlive versions.
"""

import json
import re
import sys
from pathlib import Path

OUT = Path(__file__).parents[1] / "python/iolab/domain/workload/fio_file/options.json"
ENTRY = re.compile(r'\.name\s*=\s*"(?P<name>[^"]+)"(?P<rest>.*?)(?=\.name\s*=|\Z)', re.DOTALL)
ALIAS = re.compile(r'\.alias\s*=\s*"([^"]+)"')
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def main() -> None:
    source, version = Path(sys.argv[1]), sys.argv[2]
    options: dict[str, list[str]] = {}
    engines = set()
    ours = [file for file in sorted(source.glob("engines/*.c")) if "skeleton" not in file.name]
    for file in [source / "options.c", *ours]:
        for entry in ENTRY.finditer(COMMENT.sub("", file.read_text(errors="replace"))):
            if ".lname" in entry["rest"]:
                aliases = options.setdefault(entry["name"], [])
                aliases += [alias for alias in ALIAS.findall(entry["rest"]) if alias not in aliases]
            elif re.search(r"\.version\s*=\s*FIO_IOOPS_VERSION", entry["rest"]):
                engines.add(entry["name"])
    before = json.loads(OUT.read_text())
    # A name that was an option's own stays it: an older fio has it under no other.
    for others in options.values():
        others[:] = [other for other in others if other not in options and other not in before["options"]]
    taken = {name for name, others in options.items() for name in (name, *others)}
    for name, others in before["options"].items():
        if name not in taken:
            options[name] = [other for other in others if other not in taken]
    found = {
        "version": f"fio {version}",
        "source": "options.c and the engines of fio's source; and those of older versions",
        "engines": sorted({*engines, *before["engines"]}),
        "options": dict(sorted(options.items())),
    }
    OUT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
