"""Where links of documents lead: files, and the headings in them."""

import re
from pathlib import Path

FENCED = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.M | re.S)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
_LINK = re.compile(r"\]\(\s*<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.M)


def links(text: str) -> list[str]:
    """The relative links outside of code, in the order of the page."""
    prose = _CODE.sub("`code`", FENCED.sub("", text))
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
    for heading in _HEADING.findall(FENCED.sub("", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return found
