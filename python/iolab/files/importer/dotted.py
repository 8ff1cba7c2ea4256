"""Names of figures as test programs write them: `suite.case[vanilla-10].read_latency_max` is a figure of a case under a
setting. What stands in brackets as a name is the setting, as in pytest's parametrisation; amounts are of the case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from iolab.domain.parameter import named_amount
from iolab.files.importer.csv_entries import are_operations

_DOTTED = re.compile(
    r"(?P<of>[A-Za-z_]\w*(?:\[[^\[\]\s]{1,80}\])?(?:\.\w+(?:\[[^\[\]\s]{1,80}\])?)*)\.(?P<what>[A-Za-z]\w*)"
)
_BRACKETS = re.compile(r"(?P<before>[^\[\]]+)\[(?P<given>[^\[\]]+)\](?P<after>[^\[\]]*)")
_AMOUNT = re.compile(r"\d[\d.]*[A-Za-z]{0,3}")
_OF_RUN = re.compile(r"(?:(?:run|total|wall|real|execution) ?)*(?:duration|elapsed|runtime|time)?", re.IGNORECASE)


class Dotted(NamedTuple):
    """A name in two."""

    of: str
    what: str
    """The last part of the name, in words."""

    def name_with(self, rest: str, op: str) -> str:
        """What was done, with what is left of the last part less its metric."""
        return self.of if rest == op or _OF_RUN.fullmatch(rest) else f"{self.of}.{rest.replace(' ', '_')}"


def dotted(label: str) -> Dotted | None:
    """The parts of such a name; None for any other."""
    found = _DOTTED.fullmatch(label)
    return Dotted(found["of"], found["what"].replace("_", " ")) if found else None


def settings_in(names: Iterable[str]) -> Mapping[str, tuple[str, str]]:
    """Names that differ by names in brackets: each less these, and what they are, a setting."""
    by_case: dict[str, dict[str, list[str]]] = {}
    rests: dict[str, str] = {}
    for name in names:
        if found := _BRACKETS.fullmatch(name):
            by_case.setdefault(found["before"], {})[name] = found["given"].split("-")
            rests[name] = found["after"]
    given: dict[str, tuple[str, str]] = {}
    for before, parts in by_case.items():
        shared = set.intersection(*map(set, parts.values()))
        of_case = {name: [one for one in of if one in shared or _is_of_case(one)] for name, of in parts.items()}
        settings = {name: "-".join(one for one in of if one not in of_case[name]) for name, of in parts.items()}
        if len(set(settings.values())) > 1 and all(settings.values()):
            given |= {
                name: (_joined(before, of_case[name], rests[name]), setting) for name, setting in settings.items()
            }
    return given


def _joined(before: str, parts: Sequence[str], after: str) -> str:
    return f"{before}[{'-'.join(parts)}]{after}" if parts else f"{before}{after}"


def _is_of_case(part: str) -> bool:
    return all(_AMOUNT.fullmatch(one) or named_amount(one) or are_operations([one]) for one in part.split(","))
