"""Every relative link of a document leads to a file, and every anchor to a heading; prose is 100 columns wide."""

from pathlib import Path

import pytest
from support.links import FENCED, leads_somewhere, links

pytestmark = pytest.mark.source

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


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
    outside = FENCED.sub("", document.read_text()).splitlines()
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
