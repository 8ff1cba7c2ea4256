"""The examples of a document: what is marked as one, and what may be done with it.

Marked are fenced blocks:

- `console`: each line that begins with `$ ` is run in bash and has to succeed; what is shown below it is not compared,
  unless the comment `<!-- exact output -->` stands above the block.
- `toml` whose first line is a comment with a file name (`# readers.toml`): an experiment, which has to be valid, or a
  machine's file without any workload; it lies under that name in the document's directory for the blocks after it.
- `python`: run as a program.

A block below the comment `<!-- not run: WHY -->` is left alone; below `<!-- as root -->`, it is run as root only;
below `<!-- as root, alone -->`, while no other test changes what is nobody's own, as the kernel's settings. With
`long` among these words (`<!-- as root, long -->`), `make test-all` alone runs it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^\n]*?) -->\n+)?^```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^```$", re.M | re.S)
_MADE = re.compile(r"(?:--out|--output|-o|>)[ =]\s*([\w./-]+)")
_WORD = re.compile(r"[\w./-]+")
_FILE_NAME = re.compile(r"# ([\w.-]+\.toml)\n")


@dataclass(frozen=True)
class Example:
    where: str
    """As `docs/reference/store.md:17`."""
    language: str
    text: str
    mark: str

    @property
    def is_run(self) -> bool:
        runnable = {"console": "$ " in self.text, "toml": bool(self.file_name), "python": True}
        return runnable.get(self.language, False) and not self.mark.startswith("not run")

    @property
    def needs_root(self) -> bool:
        return "as root" in self._words

    @property
    def needs_the_machine(self) -> bool:
        return "alone" in self._words

    @property
    def is_long(self) -> bool:
        return "long" in self._words

    @property
    def _words(self) -> list[str]:
        return self.mark.split(", ")

    @property
    def compares_output(self) -> bool:
        return self.mark == "exact output"

    @property
    def file_name(self) -> str | None:
        found = _FILE_NAME.match(self.text)
        return found[1] if found else None

    @property
    def commands(self) -> list[tuple[str, str]]:
        """The commands of a console block, each with the output below it. A backslash continues a command."""
        pairs: list[tuple[str, str]] = []
        for part in re.split(r"^\$ ", self.text, flags=re.M)[1:]:
            found = re.match(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.S)
            assert found
            pairs.append((found[1], found[2]))
        return pairs

    @property
    def makes(self) -> set[str]:
        """The files and directories that it leaves for later examples; a machine's file is known by its stem too."""
        names = [*_MADE.findall(self.text), *([self.file_name] if self.file_name else [])]
        return {word for name in names for word in (name.split("/")[0], name.split("/")[-1].removesuffix(".toml"))} | {
            *names
        }

    def needs(self, other: Example) -> bool:
        """Whether it names something that the other makes, or makes it again."""
        words = {word.split("/")[0] for word in _WORD.findall(self.text)}
        return bool((self.makes | words) & other.makes)


def chains(found: list[Example]) -> list[list[Example]]:
    """Examples that need one another, in the order of the document: what one leaves is there for the next."""
    made: list[list[Example]] = []
    for example in found:
        needed = [
            chain for chain in made if any(example.needs(other) or other.makes & example.makes for other in chain)
        ]
        made = [chain for chain in made if chain not in needed]
        made.append([*(each for chain in needed for each in chain), example])
    return [sorted(chain, key=found.index) for chain in made]


def examples(document: Path, root: Path) -> list[Example]:
    text = document.read_text()
    name = document.relative_to(root)
    return [
        Example(
            where=f"{name}:{text.count(chr(10), 0, found.start('language')) + 1}",
            language=found["language"],
            text=found["text"],
            mark=found["mark"] or "",
        )
        for found in _BLOCK.finditer(text)
    ]
