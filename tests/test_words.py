"""The words of docs/glossary.md everywhere: words that were coined here, and have a standard term, do not come back.

Words of every day, such as *grown* for *merged*, are not looked for: they mean what they say elsewhere.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.source

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "attack",
    "benches",
    "crates",
    "docs",
    "experiments",
    "fuzz",
    "machines",
    "published",
    "python",
    "tests",
    "tools",
)

COINED = {
    r"\bagendas?\b": "event queue",
    r"\bAgenda": "event queue",
    r"\bHabits": "I/O context",
    r"\bshelf\b|\bshelves\b": "catalogue",
    r"takes_one_ahead": "peek",
    r"\bbroke a law\b|\blaws? of its own\b|\bLaws\b|\bBroken(Law)?\b(?!Pipe)": "invariant",
    r"\b(fn|def) (attend|settle|rest|tell|hear)\b": "tick, on_completion, park, emit, drain",
    r"\b(class|enum|struct) (Impossible|Generation|Habits)\b": "a name that says of what",
    r"\bmodelled\b": "simulated",
    r"^\[said\b|\bseed = \"": "claims, case_study",
}
"""Pattern -> the term instead."""
ALLOWED = {
    ("python/iolab/files/machine_file/machine_file.py", "takes_one_ahead"): "the key's old name still works",
    ("tests/test_former_names.py", "takes_one_ahead"): "the key's old name still works",
}
"""Where a word means something else, or an old name is kept: file and text -> why."""
TEXTS = (".md", ".py", ".rs", ".toml", ".pyi", ".html", ".js", ".ipynb")


@cache
def texts() -> dict[str, str]:
    """The repository's own texts by file, but for this one."""
    paths = [*ROOT.glob("*.md"), *(path for top in FOLDERS for path in (ROOT / top).rglob("*"))]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(errors="replace")
        for path in paths
        if path.suffix in TEXTS and path != Path(__file__) and "target" not in path.parts and path.is_file()
    }


@pytest.mark.parametrize("pattern", COINED)
def test_no_coined_word_stands_for_a_standard_term(pattern: str) -> None:
    coined = re.compile(pattern, re.MULTILINE)
    found = []
    for name, text in texts().items():
        for match in coined.finditer(text):
            if (name, match[0]) not in ALLOWED:
                found.append(f"{name}: {match[0]}")
    assert not found, f"say {COINED[pattern]} instead: " + ", ".join(found[:10])


def test_the_glossary_gives_each_word_one_meaning() -> None:
    rows = re.findall(r"^\| ([^|]+?) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    words = [word for row in rows if row != "word" and "---" not in row for word in row.split(", ")]
    assert len(words) > 70
    twice = sorted({word for word in words if words.count(word) > 1})
    assert not twice, f"two meanings: {', '.join(twice)}"


def test_what_is_allowed_is_still_there() -> None:
    for (name, text), why in ALLOWED.items():
        path = ROOT / name
        assert path.is_file() and text in path.read_text(), f"{name}: {text} is gone: no longer needed ({why})"


COUNTED = re.compile(
    r" (?:more |other |further |new |fresh )?"
    r"(?:requests|bios|rounds|runs|trials|settings|workloads|comparisons|machines|files|events|records|snapshots|rows"
    r"|cells|functions|boots|kernels|commits|metrics|versions|jobs|errors|samples|lines|things)\b(?!/)"
)
"""What stands behind a number of things; `counted` writes it."""
NEVER_ONE = {
    "int(repeated.sum())": "rows that share keys",
    "len(self.differs)": "one is another sentence",
    "x.size": "two numbers that differ",
    "len(y)": "x and y rounds",
    "modes[0]": "two modes have more",
    "len(self.least_runs)": "some of the rows",
    "len(runs)": "one is another sentence",
    "len(run.workloads)": "the first of several",
    "settings": "the first of several",
    "len(parts)": "each of several",
    "most": "a mean above 1",
    "len(one.looked_at)": "a single one of several",
    "found.requests": "the slowest of several",
    "least": "a mean",
    "many": "a size",
    "apart": "a mean",
    "self.runs": "written as tiobench.pl does",
    "filesystem['kind']": "no number",
    "path.name": "no number",
    "per": "as fs_mark prints it",
}
"""Expression -> why it needs no singular."""


def counts(source: str) -> Iterator[tuple[int, str]]:
    """The line and expression of each number in a text before a plural; constants are known."""
    for text in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr)):
        for part, after in zip(text.values, text.values[1:], strict=False):
            is_text = isinstance(after, ast.Constant) and COUNTED.match(str(after.value))
            if isinstance(part, ast.FormattedValue) and is_text and not ast.unparse(part.value).isupper():
                yield part.lineno, ast.unparse(part.value)


def test_one_thing_is_no_plural() -> None:
    assert [found for _, found in counts('f"{a} runs, {B} runs, {c} of the runs, {d:,} more rounds"')] == ["a", "d"]
    written = [
        (f"{path.relative_to(ROOT)}:{line}: {{{expression}}}", expression)
        for path in (ROOT / "python" / "iolab").rglob("*.py")
        for line, expression in counts(path.read_text())
    ]
    assert NEVER_ONE.keys() <= {expression for _, expression in written}, "an exception that nothing needs"
    found = [where for where, expression in written if expression not in NEVER_ONE]
    assert not found, f"write counted(...) of iolab.base.plain_text instead: {found}"
