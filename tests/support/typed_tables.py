"""Tables as people type them, drawn from a seed, with the figures that stand in them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

MIB = 2.0**20
UNITS = {
    "iops": [("IOPS", 1), ("kIOPS", 1e3), ("IO/s", 1), ("ops/s", 1)],
    "rate": [("MB/s", 1e6), ("MiB/s", MIB), ("GB/s", 1e9), ("MB/sec", 1e6)],
    "latency": [("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("usec", 1e3), ("msec", 1e6)],
    "time": [("s", 1e9), ("sec", 1e9), ("seconds", 1e9)],
}
NAMES = {
    "iops": ["IOPS"],
    "rate": ["Bandwidth", "Throughput", "BW", "Speed"],
    "latency": ["Latency", "avg latency", "lat avg"],
    "time": ["Time"],
}
LEVELS = {
    "iops": [900, 4000, 180e3, 1.2e6],
    "rate": [3e6, 9e7, 3.4e9],
    "latency": [6e4, 2e6, 15e6],
    "time": [3e9, 3e11],
}
SETTINGS = [
    ["none", "mq-deadline", "bfq"],
    ["before", "after"],
    ["vanilla", "patched"],
    ["ext4", "xfs", "btrfs"],
    ["6.1", "6.6", "6.12"],
    ["baseline", "+patch 1", "+patch 2"],
    ["raw disk", "LUKS"],
    ["Samsung 980 Pro", "WD SN850X"],
    ["NFSv3", "NFSv4.1"],
    ["w/o patch", "w/ patch"],
    ["v1", "v2"],
]
LOADS = ["randread", "randwrite", "seqread", "4k random read", "128k sequential write", "rand read 4k", "small files"]
TIMED = ["untar", "rm -rf", "kernel build", "fsck", "mkfs", "cp -a"]
TITLES = ["", "Here are my numbers.", "Hi all,\n\nI ran it again, see below.", "fio, 4k, 60 s, direct=1"]
LAYOUTS = ["markdown", "tight", "spaces", "left", "tabs", "csv", "semicolons", "box", "lines", "html", "ruled"]
HEADINGS = ["## {}", "{}:", "**{}**", "=== {} ==="]


@dataclass
class TypedTable:
    """A text with tables, and what it states."""

    text: str = ""
    suffix: str = ".txt"
    values: dict[tuple[str, str, str], float] = field(default_factory=dict)
    """By kind, setting and load; in units of metrics, times in nanoseconds."""


def typed_table(seed: int) -> TypedTable:
    """The table of this number."""
    return _Typist(random.Random(seed)).text()


class _Typist:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.layout = draw.choice(LAYOUTS)
        commas = ["decimal comma"] if self.layout in ("markdown", "semicolons", "box", "html") else []
        self.style = draw.choice(
            ["plain", "plain", "k", *commas] if self.layout == "csv" else ["plain", "commas", *commas]
        )
        self.settings = draw.choice(SETTINGS)
        suffix = {"html": ".html", "markdown": ".md"}.get(self.layout, ".txt")
        self.made = TypedTable(suffix=suffix)

    def text(self) -> TypedTable:
        kind = self.draw.choice(["iops", "rate", "latency", "time"])
        write = self.draw.choice(
            [self._settings_in_columns, self._settings_in_rows, self._one_row_each, self._one_table_each]
        )
        lines, caption = write(kind)
        title = self.draw.choice(TITLES)
        parts = [*filter(None, [title, caption]), "", *lines, "", self.draw.choice(["", "Thanks,\nJan"])]
        self.made.text = "\n".join(parts) + "\n"
        return self.made

    def _settings_in_columns(self, kind: str) -> tuple[list[str], str]:
        unit, place = self.draw.choice(UNITS[kind]), self.draw.choice(["name", "cell", "caption"])
        head = ["Test", *(f"{one} ({unit[0]})" if place == "name" else one for one in self.settings)]
        rows = [
            [load, *(self._cell(kind, one, load, unit, in_cell=place == "cell") for one in self.settings)]
            for load in self._loads(kind)
        ]
        return self._drawn([head, *rows]), self._caption(kind, unit) if place == "caption" else ""

    def _settings_in_rows(self, kind: str) -> tuple[list[str], str]:
        unit, place = self.draw.choice(UNITS[kind]), self.draw.choice(["cell", "caption"])
        loads = self._loads(kind)
        rows = [
            [one, *(self._cell(kind, one, load, unit, in_cell=place == "cell") for load in loads)]
            for one in self.settings
        ]
        head = self.draw.choice(["Setup", "Configuration", "Kernel"])
        return self._drawn([[head, *loads], *rows]), self._caption(kind, unit) if place == "caption" else ""

    def _one_row_each(self, kind: str) -> tuple[list[str], str]:
        names, columns = self._columns()
        rows = [[one, *(self._cell(kind, one, "", *of) for kind, of in columns)] for one in self.settings]
        return self._drawn([[self.draw.choice(["Setup", "Configuration"]), *names], *rows]), ""

    def _one_table_each(self, kind: str) -> tuple[list[str], str]:
        names, columns = self._columns()
        loads, lines = self._loads("iops"), []
        for one in self.settings:
            rows = [[load, *(self._cell(kind, one, load, *of) for kind, of in columns)] for load in loads]
            lines += [self.draw.choice(HEADINGS).format(one), "", *self._drawn([["Test", *names], *rows]), ""]
        return lines, ""

    def _columns(self) -> tuple[list[str], list[tuple[str, tuple[tuple[str, float], bool]]]]:
        """The names of two or three metrics; the kind, the unit and whether it stands in the cells, of each."""
        kinds = self.draw.sample(["iops", "rate", "latency"], self.draw.randint(2, 3))
        in_cells = self.draw.random() < 0.5
        units = [self.draw.choice(UNITS[kind]) for kind in kinds]
        bare = [self.draw.choice(NAMES[kind]) for kind in kinds]
        names = [
            name if in_cells else unit[0] if name == "IOPS" else f"{name} ({unit[0]})"
            for name, unit in zip(bare, units, strict=True)
        ]
        return names, [(kind, (unit, in_cells)) for kind, unit in zip(kinds, units, strict=True)]

    def _loads(self, kind: str) -> list[str]:
        return self.draw.sample(TIMED if kind == "time" else LOADS, self.draw.randint(2, 4))

    def _caption(self, kind: str, unit: tuple[str, float]) -> str:
        return f"{unit[0] if kind == 'iops' else f'{NAMES[kind][0]} in {unit[0]}'}:"

    def _cell(self, kind: str, setting: str, load: str, unit: tuple[str, float], in_cell: bool = False) -> str:
        value = self.draw.choice(LEVELS[kind]) * self.draw.uniform(0.5, 1.5) / unit[1]
        text = f"{value:.{0 if value >= 1000 else 1 if value >= 100 else 2}f}"
        text = "1" if not float(text) else text
        if self.style == "commas":
            text = f"{float(text):,.{len(text.partition('.')[2])}f}"
        elif self.style == "k" and float(text) >= 1000 and in_cell:
            text = f"{float(text) / 1000:.1f}k" if unit[0] == "IOPS" else text
        figure = float(text.rstrip("k").replace(",", "")) * (1000 if text.endswith("k") else 1)
        self.made.values[kind, setting, load] = figure * unit[1]
        text = text.replace(".", ",") if self.style == "decimal comma" else text
        return f"{text} {unit[0]}" if in_cell else text

    def _drawn(self, rows: list[list[str]]) -> list[str]:
        """The rows as lines of the layout."""
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
        plain, dashes = {"tight": "|", "tabs": "\t", "semicolons": ";"}, ["-" * width for width in widths]
        if self.layout in plain:
            lines = [plain[self.layout].join(row) for row in rows]
            return [lines[0], *(["|".join("---" for _ in widths)] if self.layout == "tight" else []), *lines[1:]]
        if self.layout == "csv":
            return [",".join(f'"{cell}"' if "," in cell else cell for cell in row) for row in rows]
        if self.layout == "html":
            cells = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
            return [
                "<table>",
                f"<tr>{cells[0].replace('td>', 'th>')}</tr>",
                *(f"<tr>{row}</tr>" for row in cells[1:]),
                "</table>",
            ]
        if self.layout == "ruled":
            return [" | ".join(padded[0]), "-+-".join(dashes), *(" | ".join(row).rstrip() for row in padded[1:])]
        if self.layout in ("spaces", "left"):
            right = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
            return ["   ".join(row).rstrip() for row in (right if self.layout == "spaces" else padded)]
        bar, ends, rule = ("│", ("┌┬┐", "├┼┤", "└┴┘"), "─") if self.layout == "lines" else ("|", ("+++",) * 3, "-")
        rules = [f"{end[0]}{end[1].join(rule * (width + 2) for width in widths)}{end[2]}" for end in ends]
        lines = [f"{bar} {f' {bar} '.join(row)} {bar}" for row in padded]
        if self.layout == "markdown":
            return [lines[0], f"|{'|'.join('---' for _ in widths)}|", *lines[1:]]
        return [rules[0], lines[0], rules[1], *lines[1:], rules[2]]
