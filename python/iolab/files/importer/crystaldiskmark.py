"""CrystalDiskMark's text (versions 3 to 8) and KDiskMark's: each test is a workload, with its read, write and mix.

MB are 10^6 bytes, as the text states. The figure of a test is the best of its repetitions. Latency, from version 7 on,
is the mean in microseconds.
"""

from __future__ import annotations

import re

from iolab.files.importer.format import Format
from iolab.files.importer.listed import entries
from iolab.files.importer.results import Results, Row, Table
from iolab.files.importer.source import Source
from iolab.files.importer.written_number import number

MB, US = 1e6, 1e3
OPS = {"read": "read", "write": "write", "mix": "all"}
_SECTION = re.compile(r"\s*+\[(?P<op>Read|Write|Mix)[^\]]{0,20}+\](?: Read \d++%/Write \d++%)?\s*+$")
_BANNER = re.compile(r"\s*+(?:Crystal|K)DiskMark\b")
_TEST = re.compile(
    r"\s*+(?P<pattern>SEQ|RND|Seq(?:uential)?|Random)\s(?P<words>[\w ]{0,30}?)\s*+"
    r"(?:\((?P<depths>(?:QD?\s*+=\s*+\d++\s*+,?\s*+)?(?:T\s*+=\s*+\d++)?)\))?\s*+:\s++"
    r"(?P<rate>\d[\d.,]*+) MB/s(?P<rest>.*)$"
)
_REST = re.compile(
    r"\s*+(?>(?:\[\s*+(?P<iops>\d[\d.,]*+)\s*+IOPS\]\s*+)?)(?>(?:<\s*+(?P<us>\d[\d.,]*+)\s*+[uµμ]s>\s*+)?)$"
)
_AMOUNT = re.compile(r"\s*+Test\s*+:\s*+(?P<amount>\d++(?:\.\d++)?\s*+[KMG]i?B)\b")
"""Below its tests, the size of the file."""
_SIZE = re.compile(r"(?P<n>\d++)\s*+(?P<unit>KB|MB|KiB|MiB)")


class _Reader:
    def __init__(self, source: Source, results: Results) -> None:
        self.source = source
        self.results = results
        self.table: Table | None = None
        self.rows: dict[str, Row] = {}
        self.op: str | None = None
        self.waiting = 0
        """The line of a banner below which there was no test."""

    def read(self) -> None:
        for line in self.source.lines(self.results.problem):
            if section := _SECTION.match(line.text):
                self.op = OPS[section["op"].lower()]
            elif _BANNER.match(line.text):
                self.table, self.op, self.waiting = None, None, line.number
            elif amount := _AMOUNT.match(line.text):
                for row in self.rows.values():
                    row.amount = amount["amount"]
            elif test := _TEST.match(line.text):
                self.waiting = 0
                self.results.lines_read.add(line.number)
                self._test(line.number, test)
        if self.waiting:
            self.results.problem("the tests that belong below this line are not in the text", self.waiting)

    def _test(self, line: int, test: re.Match[str]) -> None:
        rest, words = _REST.match(test["rest"]), test["words"]
        op = next((OPS[word] for word in words.lower().split() if word in OPS), self.op)
        if rest is None or op is None:
            two, outside = "has two results, as of two drives", "stands under none of [Read], [Write] and [Mix]"
            what = f"{two}; each needs a text of its own" if rest is None else outside
            self.results.problem(f"the test {what}: left out", line)
            return
        workload = _name(test["pattern"], words, test["depths"] or "")
        if self.table is None or (
            (row := self.rows.get(workload)) and (row.key("rate_bytes_per_s", op), "all") in row.reported
        ):
            self.table, self.rows = self.results.table(line), {}
        if workload not in self.rows:
            self.rows[workload] = self.table.row(self.source.stem_without_round, workload)
        for metric, text, scale in (
            ("rate_bytes_per_s", test["rate"], MB),
            ("iops", rest["iops"], 1.0),
            ("latency_ns_mean", rest["us"], US),
        ):
            value = number(text) if text else None
            self.rows[workload].add(metric, value * scale if value else None, op=op, absent="not measured")


def _name(pattern: str, words: str, depths: str) -> str:
    """`random 4 KiB Q=32 T=16`, however the version writes it."""
    kind = "random" if pattern.upper().startswith("R") else "sequential"
    size = _SIZE.search(words)
    parts = [kind, *((f"{size['n']} {size['unit']}",) if size else ())]
    return " ".join([*parts, *re.sub(r"[\s,]", "", depths).replace("QD", "Q").replace("T", " T").split()])


def _recognises(source: Source) -> bool:
    """Other figures among the tests, and no sign of the program, make it somebody's list."""
    is_known = source.has_line(_BANNER) or source.has_line(_SECTION)
    tests = [found for line in source.text_lines if (found := _TEST.match(line))]
    return any(is_known or _REST.match(found["rest"]) for found in tests) and (
        is_known or not any(entries(line) for line in source.text_lines if not _TEST.match(line))
    )


FORMAT = Format(
    name="crystaldiskmark",
    help="CrystalDiskMark's text, versions 3 to 8, and KDiskMark's: a workload for each test",
    recognises=_recognises,
    parse=lambda source, results: _Reader(source, results).read(),
    words=("CrystalDiskMark", "KDiskMark", "Sequential", "Random", "MB/s", "IOPS]"),
    titled=True,
)
