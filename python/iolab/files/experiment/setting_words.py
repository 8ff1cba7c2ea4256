"""Settings that a command line gives in words: `scheduler=bfq`, or `scheduler=bfq;nr_requests=64`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from iolab.base.errors import InputError
from iolab.base.toml import value_of, written


def setting_tables(given: Sequence[str]) -> list[str]:
    """Lines of an experiment: a `[settings.NAME]` for each of the words, the first of which is the baseline;
    `as-it-is`, which changes nothing, if there are none. InputError names the words that are no pair."""
    return [line for name, controls in _settings(given) for line in ("", f"[settings.{name}]", *controls)]


def _settings(given: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    if not given:
        yield "as-it-is", []
    taken: set[str] = set()
    for text in given:
        controls = [_control(pair.strip(), text) for pair in text.split(";")]
        name = re.sub(r"[^\w]+", "-", "-".join(value for _, value in controls)).strip("-") or "setting"
        if name in taken:
            raise InputError("twice the same setting", where=f"--setting {text}")
        taken.add(name)
        yield name, [f"{control} = {value}" for control, value in controls]


def _control(pair: str, text: str) -> tuple[str, str]:
    """A control's name and its value in TOML: a word is a text."""
    name, is_pair, value = (part.strip() for part in pair.partition("="))
    if not is_pair or not re.fullmatch(r"[\w-]+", name) or not value:
        raise InputError(
            "expected CONTROL=VALUE", where=f"--setting {text}", remedy="for instance --setting scheduler=bfq"
        )
    return name, written(value_of(value))
