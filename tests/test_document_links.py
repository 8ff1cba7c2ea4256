"""Every relative link of a document leads to a file, and every anchor to a heading; prose is 100 columns wide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCED = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.M | re.S)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
_LINK = re.compile(r"\]\(\s*<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.M)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    broken = [link for link in links(document.read_text()) if not leads_somewhere(link, document)]
    assert not broken, f"{document.relative_to(ROOT)}: {', '.join(broken)}"


@pytest.mark.parametrize(
    "document",
    [one for one in DOCUMENTS if one.name != "ARCHITECTURE.md"],  # whose items are a line each
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_prose_is_a_hundred_columns_wide(document: Path) -> None:
    outside = _FENCED.sub("", document.read_text()).splitlines()
    wide = [line for line in outside if len(line) > 100 and not line.startswith("|")]
    assert not wide, f"{document.relative_to(ROOT)}: {wide[0]}"


def test_a_link_to_nothing_and_an_anchor_of_no_heading_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `two`, three\n## Twice\n## Twice\n```\n[code](gone.md)\n# no heading\n```\n`[code](gone.md)`\n"
        "[a](#one-two-three) [b](page.md#twice-1) [c](https://example.org/x) [d](gone.md) [e](page.md#no-heading)\n"
    )
    assert [link for link in links(page.read_text()) if not leads_somewhere(link, page)] == [
        "gone.md",
        "page.md#no-heading",
    ]


def links(text: str) -> list[str]:
    """The relative links outside of code, in the order of the page."""
    prose = _CODE.sub("`code`", _FENCED.sub("", text))
    return [link for link in _LINK.findall(prose) if not _ELSEWHERE.match(link)]


def leads_somewhere(link: str, document: Path) -> bool:
    path, _, anchor = link.partition("#")
    target = document.parent / path if path else document
    if not target.exists():
        return False
    return not anchor or (target.suffix == ".md" and anchor in anchors(target.read_text()))


def anchors(text: str) -> set[str]:
    """What forges make of headings: lower case, punctuation dropped, blanks as hyphens, a number from the second on."""
    seen: dict[str, int] = {}
    found = set()
    for heading in _HEADING.findall(_FENCED.sub("", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return found
