"""What the browser loads: the page, its modules, its style, the plot library; and what it may do."""

from __future__ import annotations

from importlib.resources import files

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing but the pages' own files; no text becomes script or markup, even by a mistake of theirs."""
NO_FRAMES = "; frame-ancestors 'none'"
"""Only a server can send it."""
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_HEAD = b"<head>\n"


def static_files() -> dict[str, bytes]:
    """By name, every file."""
    folder = files("iolab.presentation.site") / "static"
    found = {one.name: one for one in folder.iterdir() if one.is_file()}
    return {name: one.read_bytes() for name, one in sorted(found.items()) if name.rpartition(".")[2] in TYPES}


def page_for_files(page: bytes) -> bytes:
    """The page with the policy in it, for web servers that send none."""
    return page.replace(_HEAD, _HEAD + f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'.encode(), 1)
