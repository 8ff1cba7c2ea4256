"""What the columns of a table in a text are: settings of one metric, and changes between them that were computed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from iolab.domain import parameter
from iolab.files.importer.quantity_cell import LATENCY, THINGS, WAY, quantity, unit_of, without_unit

Grid = tuple[list[str], list[list[str]]]
"""A table of a text: the names of its columns, and the cells below them."""
Problem = Callable[[str], None]
"""Called with what is left out of a table."""
OF_RESULT = re.compile(
    r"\b[km]?iops\b|bandwidth|\bbw\b|throughput|\b[kmg]i?b(?:ytes|its?)?/s|\blatency\b|\bc?lat\b|\bp9\d|\b[km]?(?:ops|req|tx|obj|files)/s"
    r"|\b[tqr]ps\b|\b(?:transactions|queries|requests|operations) per second\b",
    re.IGNORECASE,
)
"""A metric of I/O, or its unit."""
MEASURED = re.compile(
    r"\d ?(?:(?:[kKMG] ?)?(?i:IOPS)|[kKMGT]?i?(?:B|bits?)/s(?:ec)?|[nuµm]s|[kKMG]/s|(?:[kM] ?)?[tqrTQR][pP][sS]"
    rf"|(?:[kKMG] ?)?{THINGS}s?/s(?:ec)?)\b"
)
"""A rate or a latency; seconds stand in many a sentence."""
OF_TEST = re.compile(
    rf"seq|rand|rnd|{WAY}|\bmixed\b|^total$"
    r"|\b\d+ ?[km]i?b?(?:qd\d+)?\b(?! (?:read[- _]?ahead|cache|buffers?|stripes?|chunks?|ram|memory|journal)\b)"
    r"|\b(?-i:PUT|GET|HEAD|LIST|STAT|DELETE|INSERT|UPDATE|SELECT|SCAN)\b",
    re.IGNORECASE,
)
"""What only the name of a test has: how it accesses, and how much, or a request. A cache of a size is what was set."""
_UNIT = re.compile(
    rf"\(?\[?\b(?P<unit>[kKMGT]?i?(?:B|bits?)/s(?:ec)?|[kKM]?IOPS|[kM]?{THINGS}s?/s(?:ec)?|[mnuµ]s(?:ec)?)\b\)?\]?"
)
_IN_UNIT = re.compile(r"\bin (?P<unit>[kM](?:IOPS|ops/s))\b")
"""`IOPS in kIOPS`."""
_THOUSANDS = re.compile(
    r"\b(?P<unit>IOPS|ops/s|[TQ]PS)\b,? ?[(\[]?(?:in )?"
    r"(?:(?P<prefix>(?<=[(\[])[kM])|thousands?|[x\u00d7] ?1,?000|1,?000s)\b[)\]]?"
)
_IN_THOUSANDS = re.compile(r"\bthousands?\b", re.IGNORECASE)
_IN_MILLIONS = re.compile(r"\bmillions?\b", re.IGNORECASE)
_CHANGE = re.compile(
    # A share of time is a figure of its own, as a percentile is.
    r"(?!.*\b(?:\d\d(?:\.\d+)?th|cpu|util\w*|busy|iowait|idle|hits?|usr|user|sys\w*)\b)"
    r"(?:\W*(?:delta|Δ|change|diff(?:erence)?|gain|improve\w*|regress\w*|reduction|speed-?up|ratio|vs\.?|percent)\b.*"
    r"|.*[ (](?:diff|delta|change|%)\)?\W*|%.*|Δ.*|.*\bvs\b.*)",
    re.IGNORECASE,
)
_QUOTIENT = re.compile(
    r"speed-?ups?|ratio|relative(?: performance| speed)?|improvement|gain|overhead|% of .*", re.IGNORECASE
)
"""Behind a single column, as a share or a multiple of one of its figures."""
CHANGES = r"before|after|base(?:line)?|(?:un|non-?)?patched|vanilla|mainline"
"""What was changed is called so, and never what was done. Chosen, as the names below are."""
SETTINGS = r"noop|(?:mq-)?deadline|cfq|bfq|kyber|ext[234]|xfs|btrfs|zfs|f2fs|bcachefs"
"""Schedulers and file systems."""
COUNT_DIGITS_MAX = 5
"""Of a column's name that is a count: threads, readers. Chosen."""
_SIZE = re.compile(r"\d{1,12} ?(?:[kKmMgGtT](?:i?B)?|B)")
_WAY = re.compile(r"(?:reads?|writes?|r|w)", re.IGNORECASE)
_TOGETHER = re.compile(r"\s*(?:[/,&+]|\bx\b|\band\b)\s*")
_OF_UNIT = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_CHANGED = re.compile(
    r"[-+\u2212\u00b1]\s?[\d.,]{1,12}\s?[%x\u00d7]"
    r"|[~≈]?[\d.,]{1,12}\s?[%x\u00d7] (?:slower|faster|higher|lower|better|worse|less|more|fewer)",
    re.IGNORECASE,
)
"""A cell of such a column, whatever it is called."""
RATIO = re.compile(r"[-+\u2212\u00b1~≈]?[\d.,]{1,12}\s?[%x\u00d7]")
_TIME = re.compile(r"time \(\w{1,12}\)", re.IGNORECASE)
_TIME_STATED = re.compile(
    r"(?:\bin\s|(?<!\S)[(\[])(?P<unit>[mnuµ]s(?:ec)?|s|sec|(?:milli|micro|nano)?seconds)(?:[)\]]|\b(?! of\b))"
)
"""What took seconds states no unit: `ran for 30 seconds`."""
_PER_SECOND = re.compile(
    r"\b(?P<short>[tqr]ps)\b"
    rf"|\b(?:(?P<what>transactions|queries|requests)|{THINGS}s)(?: \w+)? (?:per|a) second\b",
    re.IGNORECASE,
)
_WORDS = (
    (re.compile(r"\bmegabytes?\b", re.IGNORECASE), "MB"),
    (re.compile(r"\bmebibytes?\b", re.IGNORECASE), "MiB"),
    (re.compile(r"\bkilobytes?\b", re.IGNORECASE), "kB"),
    (re.compile(r"\bgigabytes?\b", re.IGNORECASE), "GB"),
    (re.compile(r"(?<=B)\s?\bper sec(?:ond)?\b"), "/s"),
)
"""How units are written in words."""
_RATE = re.compile(
    r"\b[km]?iops\b|bandwidth|\bbw\b|throughput|\b[kmg]?i?b(?:ytes|its?)?/s|\b[km]?(?:ops|req|tx|obj)/s", re.IGNORECASE
)
"""Beside it, a time may be how long it ran."""
_LATENCY_STATED = re.compile(
    r"(?:\b(p\d\d(?:\.9+)?|max|min|median)\s(?:\w+\s)?)?(?:\b\w+\s)?\b(c?latency|latencies|c?lat)\b", re.IGNORECASE
)
_WORD_OF_METRIC = re.compile(r"p\d\d(?:\.\d+)?|avg|mean|max|min|\([^()]*\)|\[[^\[\]]*\]", re.IGNORECASE).fullmatch
_WORD = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|[^\s()\[\]]+")


_FOREIGN = {
    "lesen": "read",
    "schreiben": "write",
    "durchsatz": "throughput",
    "bandbreite": "bandwidth",
    "latenz": "latency",
    "sequenziell": "sequential",
    "sequentiell": "sequential",
    "zuf\u00e4llig": "random",
    "mittel": "mean",
    "mittelwert": "mean",
    "dauer": "time",
    "lecture": "read",
    "\u00e9criture": "write",
    "d\u00e9bit": "throughput",
    "bande passante": "bandwidth",
    "latence": "latency",
    "s\u00e9quentiel": "sequential",
    "s\u00e9quentiell": "sequential",
    "al\u00e9atoir": "random",
    "moyenne": "mean",
    "lesend": "read",
    "schreibend": "write",
    "lectura": "read",
    "escritura": "write",
    "lettura": "read",
    "scrittura": "write",
    "leitura": "read",
    "escrita": "write",
    "odczyt": "read",
    "zapis": "write",
    "\u0447\u0442\u0435\u043d\u0438\u0435": "read",
    "\u0437\u0430\u043f\u0438\u0441\u044c": "write",
}
_FOREIGN_WORD = re.compile(rf"(?<!\w)(?P<stem>{'|'.join(_FOREIGN)})(?:es|er|e|s)?(?!\w)", re.IGNORECASE)


def in_english(name: str) -> str:
    """The name with words of it in English: `Lesen (MB/s)`, `lettura`."""
    return _FOREIGN_WORD.sub(lambda found: _FOREIGN[found["stem"].lower()], name)


def is_change(name: str) -> bool:
    """Whether a column is called as one of changes."""
    return bool(_CHANGE.fullmatch(name))


def without_changes(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Grid:
    """The table less its columns of changes, if two columns of figures or more are left beside them."""
    columns = [[row[place] for row in rows if row[place]] for place in range(len(header))]
    bare = [without_unit(name) for name in header]
    quotients = [name for name in header[1:] if "/" in name and set(name.split("/")) & set(bare[1:])]
    kept = [
        place
        for place, name in enumerate(header)
        # What was computed of columns stands behind them.
        if not (place > 2 and (is_change(name) or name in quotients))
        and not (place > 1 and _QUOTIENT.fullmatch(name))
        and not (place and columns[place] and all(map(_CHANGED.match, columns[place])))
    ]
    if len(kept) < (2 if _QUOTIENT.fullmatch(header[-1]) else 3):
        kept = list(range(len(header)))
    units = {header[place][len(bare[place]) :].strip() for place in kept[1:]}
    if quotients and len(kept) == 3 and len(units) == 1 and _TIME.fullmatch(f"time {(unit := units.pop())}"):
        # `old (s)` and `new (s)`, beside `old/new`, are settings.
        header = [header[0], *(f"{name} time {unit}" for name in bare[1:])]
    return [header[place] for place in kept], [[row[place] for place in kept] for row in rows]


def with_amounts(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Grid:
    """The table with the columns right of the first that state how much was done in the names of its rows:
    `4 KiB[QD=32]`."""
    end = 1
    while end < len(header) - 1 and is_amount(header[end], [row[end] for row in rows]):
        end += 1
    if end == 1:
        return list(header), [list(row) for row in rows]
    return in_names(header, rows, range(1, end))


def _said(header: Sequence[str], row: Sequence[str], places: Collection[int]) -> list[str]:
    return [f"{header[place]}={row[place]}" for place in places if row[place].strip()]


def in_names(header: Sequence[str], rows: Sequence[Sequence[str]], places: Collection[int]) -> Grid:
    """The table with these columns, right of the first, in the names of its rows: `4 KiB[QD=32,Jobs=4]`."""
    rest = [place for place in range(1, len(header)) if place not in places]
    named = [
        [
            row[0] + (f"[{','.join(said)}]" if (said := _said(header, row, places)) else ""),
            *(row[place] for place in rest),
        ]
        for row in rows
    ]
    return [header[0], *(header[place] for place in rest)], named


def is_amount(name: str, entries: Sequence[str]) -> bool:
    """Whether the column states how much was done: `Threads`, `bs`; several together, as in `bs / depth`."""
    names = [name] if parameter.plain(name) in parameter.AMOUNTS else _TOGETHER.split(_OF_UNIT.sub("", name))
    return all(parameter.plain(one) in parameter.AMOUNTS for one in names) and all(
        len(parts := _TOGETHER.split(entry) if len(names) > 1 else [entry]) == len(names) and all(map(_is_size, parts))
        for entry in entries
    )


def are_counts(names: Sequence[str]) -> bool:
    """Whether columns are called by how many there were: `1 2 4 8`, each a multiple of the one before, or `1 2 3`."""
    if len(names) < 2 or not all(map(str.isdecimal, names)) or any(len(name) > COUNT_DIGITS_MAX for name in names):
        return False
    pairs = [(int(first), int(second)) for first, second in pairwise(names)]
    return all(0 < first < second and second % first == 0 for first, second in pairs) or all(
        second == first + 1 for first, second in pairs
    )


def are_sizes(names: Sequence[str]) -> bool:
    """Whether columns are called by sizes alone: `4k 64k 1M`."""
    return len(names) > 1 and all(map(_SIZE.fullmatch, names))


def by_count(
    header: Sequence[str], rows: Sequence[Sequence[str]], name: str, *, are_settings: bool, above: str
) -> Grid:
    """The table with a column for each row, where columns are called by counts or sizes and rows by what was changed.
    `name`: what rows are called without one. `are_settings`: whether the first column says that rows are; then columns
    may be called by amounts, such as `QD1`. `above`: the lines above. Any other table as it is."""
    units = {unit_in(one) for one in header[1:]}
    counts = [one.replace(unit_in(one), "").strip() for one in header[1:]]
    labels, of_labels = _with_metric_of_all([row[0] for row in rows], above)
    are_changes = bool(labels) and all(labels) and len(set(labels)) == len(labels) and not is_amount(header[0], labels)
    are_amounts = are_settings and all(map(parameter.named_amount, counts))
    if (
        not (are_counts(counts) or are_sizes(counts) or are_amounts)
        or not are_changes
        or any(OF_TEST.search(one) or _is_of_metric(one) for one in labels)
    ):
        return list(header), [list(row) for row in rows]
    unit = of_labels or (units.pop() if len(units) == 1 else "")
    cells = zip(*(row[1:] for row in rows), strict=True)
    return ["", *(f"{label} {unit}".strip() for label in labels)], [
        [f"{name}[{count}]", *column] for count, column in zip(counts, cells, strict=True)
    ]


def _with_metric_of_all(labels: list[str], above: str) -> tuple[list[str], str]:
    """The names of rows without the metric that all of them have, and the metric: `AIO IOPS`, `SPDK IOPS`, or
    `AIO (us)`, `SPDK (us)` below a line that says what takes so long."""
    if split := settings_of(["", *labels]):
        return split
    units = {unit_in(label) for label in labels}
    if len(units) != 1 or "" in units:
        return labels, ""
    unit = units.pop()
    is_latency = bool(LATENCY.search(above)) and unit.rstrip(")").endswith(("s", "sec")) and "/" not in unit
    bare = [
        " ".join(re.sub(r"[(\[]?" + re.escape(unit.strip("()")) + r"[)\]]?", " ", label).split()) for label in labels
    ]
    return bare, f"latency {unit}" if is_latency else unit


def _is_size(entry: str) -> bool:
    return entry.isdecimal() or bool(_SIZE.fullmatch(entry))


def by_case(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Grid:
    """The table with a row for each case, where columns are called by settings and cases: `old QD1`, `old QD32`,
    `new QD1`, `new QD32`. Cases are amounts or tests. Any other table as it is."""
    names = [_WORD.findall(name) for name in header[1:]]
    shared = [word for word in names[0] if all(word in other for other in names)] if names else []
    parts = [[word for word in words if word not in shared] for words in names]
    if min(map(len, parts), default=0) < 2:
        return list(header), [list(row) for row in rows]
    for end in range(1, min(map(len, parts))):
        for from_end in (False, True):
            cut = [len(words) - end if from_end else end for words in parts]
            pairs = [(" ".join(one[:at]), " ".join(one[at:])) for one, at in zip(parts, cut, strict=True)]
            if found := _settings_and_cases(pairs):
                is_metric = bool(
                    OF_RESULT.search(metric := " ".join(shared)) or LATENCY.search(metric) or unit_of(metric)
                )
                named = found if is_metric else [(one, f"{metric} {case}".strip()) for one, case in found]
                return _parted(header, rows, named, metric if is_metric else "")
    return list(header), [list(row) for row in rows]


def _settings_and_cases(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]] | None:
    """Each column's setting and case; None unless every setting has every case, and only one of both is what cases
    are."""
    first, second = ({one[place] for one in pairs} for place in (0, 1))
    if min(len(first), len(second)) < 2 or len(set(pairs)) < len(pairs) or len(first) * len(second) != len(pairs):
        return None
    are_cases = [all(map(is_case, first)), all(map(is_case, second))]
    others = second if are_cases[0] else first
    if are_cases[0] == are_cases[1] or any(_says_what(name) or _is_of_metric(name) for name in others):
        return None
    return [(after, before) for before, after in pairs] if are_cases[0] else list(pairs)


def is_case(name: str) -> bool:
    """Whether the name is an amount, such as `QD1`, `8 threads` and `64k`, or a test, such as `4k randread`. Reads and
    writes alone are operations of one."""
    count, _, thing = name.partition(" ")
    return bool(
        parameter.named_amount(name)
        or parameter.SIZE.fullmatch(name)
        or (count.isdecimal() and {parameter.plain(thing), f"{parameter.plain(thing)}s"} & parameter.AMOUNTS)
        or (OF_TEST.search(name) and not OF_RESULT.search(name) and not _WAY.fullmatch(name))
    )


def _parted(
    header: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[tuple[str, str]], metric: str
) -> Grid:
    settings, cases = (list(dict.fromkeys(one[place] for one in columns)) for place in (0, 1))
    place = {one: number for number, one in enumerate(columns, 1)}
    amounts = is_amount(header[0], [row[0] for row in rows])
    made = []
    for row in rows:
        for case in cases:
            name = f"{case}[{header[0]}={row[0]}]" if amounts else f"{row[0]}[{case}]" if row[0] else case
            made.append([name, *(row[place[setting, case]] for setting in settings)])
    return ["" if amounts else header[0], *(f"{setting} {metric}".strip() for setting in settings)], made


def settings_of(header: Sequence[str]) -> tuple[list[str], str] | None:
    """Columns that are called by a setting and by the metric of all: `Base IOPS`, `Patched IOPS` -> the settings, and
    `IOPS`. None if any has another metric, or no name of its own."""
    words = [_WORD.findall(name) for name in header[1:]]
    if len(words) < 2:
        return None
    shared = [word for word in words[0] if all(word in other for other in words)]
    if any(not set(one) - set(shared) for one in words):
        # `base IOPS` beside `base patched IOPS`.
        shared = list(filter(_is_of_metric, shared))
    metric = " ".join(shared)
    names = [" ".join(word for word in one if word not in shared) for one in words]
    are_with = {name.lower() for name in names} in ({"with", "without"}, {"w/", "w/o"})
    if are_with:
        names = [" ".join([name, *(word for word in shared if not _is_of_metric(word))]) for name in names]
    is_metric = OF_RESULT.search(metric) or LATENCY.search(metric) or _TIME.fullmatch(metric)
    if not is_metric or not all(names) or len(set(names)) < len(names):
        return None
    # `read IOPS` beside `write IOPS`, `p50 lat` beside `p99 lat` are of one setting.
    return None if not are_with and any(map(_says_what, names)) else (names, metric)


def settings_by_metric(header: Sequence[str]) -> dict[str, dict[int, str]] | None:
    """Columns that are called by a setting and one of several metrics: `old IOPS`, `old BW`, `new IOPS`, `new BW` ->
    for each metric, the settings by place. None unless two settings or more have all metrics. A setting may be the
    first word of each name, if one of the metrics is known: `old IOPS`, `old CPU ns/op`."""
    names = [_WORD.findall(name) for name in header[1:]]
    known = [[word for word in words if _is_of_metric(word)] for words in names]
    apart = [([word for word in words if not _is_of_metric(word)], of) for words, of in zip(names, known, strict=True)]
    first = [(words[:1], words[1:]) for words in names]
    return _by_metric(apart) or (_by_metric(first) if any(map(any, known)) else None)


def _is_of_metric(word: str) -> bool:
    return bool(OF_RESULT.search(word) or LATENCY.search(word) or _WORD_OF_METRIC(word))


def _by_metric(columns: Sequence[tuple[list[str], list[str]]]) -> dict[str, dict[int, str]] | None:
    """By the words of each column's setting and metric; None if they are no such table."""
    found: dict[str, dict[int, str]] = {}
    for place, (setting, of_metric) in enumerate(columns, 1):
        if not setting or not of_metric or _says_what(" ".join(setting)) or all(map(_is_of_metric, setting)):
            return None
        found.setdefault(" ".join(of_metric), {})[place] = " ".join(setting)
    settings = [set(places.values()) for places in found.values()]
    same = len(found) > 1 and len(settings[0]) > 1 and all(one == settings[0] for one in settings)
    # `QD1 read` and `QD32 read` are cases.
    if not same or all(map(is_case, settings[0])):
        return None
    return found if sum(map(len, found.values())) == len(found) * len(settings[0]) else None


def _says_what(name: str) -> bool:
    return bool(
        re.search(
            r"\b(?:read|write|rand\w*|seq\w*|p\d\d|avg|mean|max|min|median|std\w*|total|r|w|real|user|sys(?:tem)?|cpu|wall|elapsed|\d+(?:th|%))\b"
            r"|^\d+ ?[kmg]i?b?$",
            name,
            re.IGNORECASE,
        )
    )


def stated_in(text: str) -> str:
    """What a text states that figures are, as a header has it: `(IOPS)`, `p99 latency (us)`, `time (ms)`; empty if it
    states none."""
    unit = _per_second_in(text)
    scale = "k" if _IN_THOUSANDS.search(text) else "M" if _IN_MILLIONS.search(text) else ""
    for written, short in _WORDS:
        text = written.sub(short, text)
    unit = unit_in(text) or unit
    if not _RATE.search(text) and (found := _TIME_STATED.search(text)) and quantity(f"1 {found['unit']}"):
        unit = f"({found['unit']})"
    one = unit_of(unit) if unit else None
    if one is None or one[1].metric != "ns":
        is_count = one is not None and one[1].metric in ("iops", "operations_per_s") and one[1].value == 1
        return f"({scale}{unit[1:] if OF_RESULT.search(unit) else 'ops/s)'}" if is_count else unit
    latency = _LATENCY_STATED.search(text)
    return f"{' '.join(filter(None, latency.groups())) if latency else 'time'} {unit}"


def _per_second_in(text: str) -> str:
    """`(TPS)` of `TPS:` and of `Transactions per second:`, `(ops/s)` of `files created per second`; empty without
    one."""
    found = _PER_SECOND.search(text)
    if found is None:
        return ""
    if not (found["short"] or found["what"]):
        return "(ops/s)"
    return f"({(found['short'] or found['what'][0] + 'ps').upper()})"


def in_thousands(text: str) -> str:
    """The text with `(kIOPS)` in place of `IOPS (thousands)` and `kIOPS`."""
    text = _THOUSANDS.sub(lambda found: f"{found['prefix'] or 'k'}{found['unit']}", text)
    return re.sub(r"(?<![\w(\[])[kM]IOPS\b(?![)\]])", r"(\g<0>)", text)


def unit_in(text: str) -> str:
    """The unit that a text states of its figures, as a header has it: `(IOPS)`; empty without one."""
    found = _IN_UNIT.search(text) or _UNIT.search(in_thousands(text))
    return f"({found['unit']})" if found and quantity(f"1 {found['unit']}") else ""
