"""What an option of mkfs or mount may look like. A value has a type, and no type has room for a path: what iolab hands
on names no file and no device but its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LENGTH_MAX = 255
"""The characters of one value."""


@dataclass(frozen=True)
class Value:
    """A type of value: the pattern that a text has to match whole, and the words for it in an error."""

    pattern: str
    expected: str
    may_be_left_out: bool = False

    def takes(self, text: str) -> bool:
        """Whether the text is such a value, of 255 characters at most."""
        return len(text) <= LENGTH_MAX and re.fullmatch(self.pattern, text, re.ASCII) is not None

    @property
    def or_nothing(self) -> Value:
        """The same, for a key that may stand alone too."""
        return Value(self.pattern, self.expected, may_be_left_out=True)


@dataclass(frozen=True)
class RefusedForm:
    """A form that the tool accepts and that iolab does not pass on."""

    why: str


NUMBER = Value(r"\d{1,20}", "a number")
REAL = Value(r"\d{1,20}(\.\d{1,20})?", "a number")
SIZE = Value(r"\d{1,20}(\.\d{1,20})?[A-Za-z]{0,3}", "a size such as 4k")
SWITCH = Value(r"[01]", "0 or 1")
ALONE = Value("", "nothing", may_be_left_out=True)
LABEL = Value(r"[\w.+:][\w.+: -]*", 'a label of letters, digits, spaces and "_", "-", ".", "+", ":"')
WORDS = Value(r"\^?[A-Za-z]\w*([,-]\^?\w+)*", "names of features, separated by commas")
OWNER = Value(r"\d{1,10}:\d{1,10}", "two numbers such as 0:0")
CONTEXT = Value(r"[A-Za-z]\w*(:[\w.-]+)+", "a security context such as system_u:object_r:tmp_t:s0")
NAMES_A_PATH = RefusedForm("it names a file")
OWN_UUID = RefusedForm("iolab gives each filesystem a UUID of its own")


def one_of(*words: str) -> Value:
    """A word from a closed list."""
    return Value("|".join(map(re.escape, words)), f"one of {', '.join(words)}")


def flags(words: str) -> dict[str, Value]:
    """Keys that stand alone, from a text."""
    return dict.fromkeys(words.split(), ALONE)


Keys = Mapping[str, Value | RefusedForm]
"""What stands between commas: key, or key=value."""
Form = Value | RefusedForm | Keys
"""What an option of mkfs takes."""


class Fault(Exception):
    """One line: what is wrong with the options."""


def check_keys(option: str, text: str, keys: Keys) -> None:
    """Raises Fault if `text` is no list of `keys`; `option` names it in messages."""
    for entry in text.split(","):
        key, given, value = entry.partition("=")
        form = keys.get(key)
        named = f"{option} {key}".strip()
        if form is None:
            raise Fault(f"{named!r} is not among what iolab hands on: {_listed(keys)}")
        if isinstance(form, RefusedForm):
            raise Fault(f"{named!r} is refused: {form.why}")
        if given or not form.may_be_left_out:
            check_value(named, value, form)


def check_value(option: str, text: str, form: Value) -> None:
    """Raises Fault if `text` is not such a value."""
    if not form.takes(text):
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise Fault(f"{option!r} has {shown!r}, expected {form.expected}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


COMMON_MOUNT: Keys = {
    **flags(
        "defaults rw ro atime noatime relatime norelatime strictatime nostrictatime diratime nodiratime lazytime "
        "nolazytime sync async dirsync dev nodev suid nosuid exec noexec iversion noiversion mand nomand symfollow "
        "nosymfollow silent loud"
    ),
    "context": CONTEXT,
    "defcontext": CONTEXT,
    "fscontext": CONTEXT,
    "rootcontext": CONTEXT,
}
"""Options that mount(8) takes for every filesystem. None that names another place or a helper."""
