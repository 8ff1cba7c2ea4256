"""The nearest right word, for error messages."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word most like `word`, or None when none is close."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(words), n=1, cutoff=0.6)), None)


def unknown(what: str, word: str, words: Iterable[str]) -> str:
    """`unknown option; did you mean block_size?`, or all the words when none is close."""
    choices = list(words)
    close = nearest(word, choices)
    return f"unknown {what}; did you mean {close}?" if close else f"unknown {what}; there are: {', '.join(choices)}"
