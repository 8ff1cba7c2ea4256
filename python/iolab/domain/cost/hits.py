"""Which paths run code that a patch changes, by the functions that its files define, and which stand for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from iolab.domain.symbols import source_name


def hits(executed: Mapping[str, Set[str]], defined: Mapping[str, Set[str]]) -> dict[str, dict[str, list[str]]]:
    """By path that executes any, by file, the functions of the file that it executes, sorted.

    Args:
        executed: by path, the functions that it executes.
        defined: by file, the functions that it defines.
    """
    of_file = {file: {source_name(one) for one in functions} for file, functions in defined.items()}
    found: dict[str, dict[str, list[str]]] = {}
    for path, functions in executed.items():
        names = {source_name(one) for one in functions}
        of_path = {file: sorted(own & names) for file, own in of_file.items() if own & names}
        if of_path:
            found[path] = of_path
    return found


def representatives(found: Mapping[str, Mapping[str, Sequence[str]]], most: int) -> list[str]:
    """All paths of `found` (from `hits`) if they are at most `most`, else so many: first those that together run as
    many of the functions as possible, then those that run most. Sorted."""
    functions = {path: {(file, one) for file, names in files.items() for one in names} for path, files in found.items()}
    if len(functions) <= most:
        return sorted(functions)
    chosen: list[str] = []
    missing = set().union(*functions.values())
    while len(chosen) < most:
        left = sorted(set(functions) - set(chosen))
        best = max(left, key=lambda path: (len(functions[path] & missing), len(functions[path])))
        chosen.append(best)
        missing -= functions[best]
    return sorted(chosen)
