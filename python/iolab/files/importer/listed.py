"""Lists of figures in prose: `- Random Read IOPS: 235k`, `4K Q32 seq write = 419 MiB/s`, `-c 4 -- 640 TPS`. What is
measured stands in the label or in the figure's unit; the rest of the label is the workload's name. A line may have
several, behind a name of their own: `Before: IOPS=3227, BW=12.6MB/s`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from iolab.base.plain_text import counted
from iolab.domain import parameter
from iolab.domain.metric import ALL
from iolab.files.importer.columns import CHANGES, MEASURED, OF_RESULT, OF_TEST, SETTINGS, is_case, stated_in
from iolab.files.importer.csv_file import metric_of
from iolab.files.importer.csv_layout import SETTING as SETTINGS_OF_CSV
from iolab.files.importer.dotted import dotted, settings_in
from iolab.files.importer.durations import in_seconds
from iolab.files.importer.format import Format
from iolab.files.importer.quantity_cell import (
    LATENCY,
    REQUESTS_PER_S,
    STATISTIC,
    THINGS,
    Quantity,
    quantities,
    quantity,
    ways_in,
    with_unit,
    without_spaces,
    without_spread,
    without_unit,
)
from iolab.files.importer.results import Results
from iolab.files.importer.source import Line, Source
from iolab.files.importer.titles import NUMBERED_ROUND, TITLE_MAX, may_name, title_of, without_markup
from iolab.files.importer.unread import RANGE

LINES_MIN, METRICS_MIN = 2, 3
"""Lines, or the metrics of a single one, that make a list. Chosen."""
LINE_QUOTED_MAX = 60
ALIKE, ALIKE_MIN = 1.05, 3
"""Figures behind a label that differ by no more, and are so many, are runs. Chosen: conditions differ by more."""
OF_NO_NAME = "list"
_LINE = re.compile(
    r"\s{0,12}(?:[-*•+] |\d{1,2}[.)] )?[*_`]{0,2}(?P<label>[A-Za-z\d]"
    r"(?:[^:=|*`]|(?<=\w)=(?=[A-Za-z][\w.-]*+[:;\s]|\w++:\s)){1,100}?)[*_`]{0,2}\s*+"
    r"(?:[:=]|(?<=\s)(?:--|[\u2013\u2014]|\.{3,20}+)(?=\s))\s*+[*_`]{0,2}"
    r"(?:(?:avg|average|mean)\.? )?(?P<figure>~?\d[^:=|*_`]{0,60}?)"
    r"(?P<each>\s+per\s+(?:core|cpu|thread|device|drive|disk|job|node|queue))?"
    r"[*_`]{0,2}(?:\s+(?:[^\w\s(]{1,20}+|<-+ [^:=|]{1,60}))?(?:\s+\((?P<inside>[^()]{1,80})\))?[.,;]?\s*+$",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"\s{0,12}(?:[-*•+] )?[*_`]{0,2}(?P<lead>\w[^:=;,|*`]{0,60}?)"
    r"(?:[*_`]{0,2}\s*+(?:[:.]|--|[\u2013\u2014])[*_`]{0,2}\s+|\s{2,})"
    r"(?P<pairs>[*_`]{0,2}[A-Za-z][^:=;,]{0,40}(?:[:=]|\s~?\d).*)"
)
_LED = re.compile(r"\s{0,12}(?:[-*\u2022+] )?(?P<lead>\w[^:=;,|]{1,40}?):\s+(?P<rest>[A-Za-z][^:=|]{1,60}:\s+~?\d.*)")
"""`Before patch: mkdir: 3.1s 3.2s`."""
_BETWEEN_PAIRS = re.compile(r"[;,]\s+|\s{2,}+(?=[A-Za-z]|\d[\d.,]*+ ?(?:[kKMG]?(?:iops|i?B/s)|\w{2,9}/s)\b)")
_PAIR = re.compile(
    r"[*_`]{0,2}(?P<label>[A-Za-z][^:=;|*`]{0,60}?)[*_`]{0,2}(?:\s*+(?P<sign>[:=])|\s)\s*+[*_`]{0,2}"
    r"(?P<figure>~?\d[^:=;|*_`]{0,30}?)[*_`]{0,2}\.?\s*$"
)
"""`IOPS=3227`; without a sign, `IOPS 3227`, where the label is that of a metric or of an amount alone."""
_WITH_STATISTICS = re.compile(
    r"\s{0,12}(?:[-*\u2022+] )?(?P<what>[A-Za-z][\w ()/]{0,60}?)[:=]?"
    rf"(?P<statistics>(?:[ ,]\s*{STATISTIC}[ :=]\s*~?\d[\d.,]*+[kM]?"
    rf"(?: ?(?!{STATISTIC}\b)[A-Za-z\u00b5/]{{1,5}})?){{2,9}})\s*$",
    re.IGNORECASE,
)
"""`IOPS mean 852 stddev 158`."""
_EACH_STATISTIC = re.compile(
    rf"(?P<name>{STATISTIC})[ :=]\s*(?P<figure>~?\d.*?)(?=[ ,]\s*{STATISTIC}[ :=]|$)", re.IGNORECASE
)
_OF_WAYS = re.compile(
    r"\s{0,12}(?:[-*•+] )?(?P<lead>\w[^:=;,|*`]{0,60}?)(?:[:=]| -{1,2}| \u2013| \u2014)\s+(?P<ways>\S.{8,120})$"
)
_BETWEEN_WAYS = re.compile(r"[,;]\s+|\s+/\s+|\s+and\s+|\s+\|\s+")
_WAY = r"(?:(?:\d{1,4} ?[kKM]i?B? )?(?:seq\w*|rand\w*) |\d{1,4} ?[kKM]i?B? )?(?:reads?|writes?)"
_A_WAY = re.compile(
    rf"(?P<before>{_WAY})?:? ?(?P<figure>~?\d[\d.,]{{0,20}} ?(?:[kM] ?)?[A-Za-z/]{{2,8}})(?: \(?(?P<behind>{_WAY}|[rw]\b)\)?)?",
    re.IGNORECASE,
)
_NAME_BEHIND = re.compile(
    r"\s{0,12}(?:[-*\u2022+] |\d{1,2}[.)] )?(?:(?P<lead>\w[^:=;,|]{0,60}?):\s+)?"
    r"(?P<figure>~?\d[\d.,]{0,20} ?(?:[kM] ?)?[A-Za-z\u00b5/]{2,12}) (?:for|on|of|in|during)(?: the)? "
    r"(?P<name>\w[^:=;,|]{1,60}?)\.?\s*$"
)
"""`1234 IOPS for randread`."""
_SHORT = {"R": "read", "W": "write"}
_EXTREME = re.compile(r"(?:min(?:imum)?|max(?:imum)?)\b\.? ?", re.IGNORECASE)
OF_EXTREMES = ("rate_bytes_per_s", "iops", "operations_per_s")
"""Rates whose least and greatest are figures of their own."""
_FIO_LATENCIES = re.compile(
    r"(?:,| and|;)\s{1,8}(?P<what>[sc]?lat) \((?P<unit>[mun])sec\)\s?: "
    r"min=\s?(?P<min>[\d.]+k?), max=\s?(?P<max>[\d.]+k?), avg=\s?(?P<mean>[\d.]+k?), stdev=\s?(?P<stddev>[\d.]+k?)"
)
"""fio's, behind a rate in one line."""
_WAY_WITHIN = re.compile(
    r"(?P<number>~?\d[\d.,]*+[kM]?) (?P<way>(?:(?:random|rand|sequential|seq) )?(?:reads?|writes?)) (?P<unit>\S{2,8})",
    re.IGNORECASE,
)
"""`1426 write iops`."""
_FIGURE_ALONE = re.compile(
    r"\s{0,12}(?:[-*•+] |\d{1,2}[.)] )?[*_`]{0,2}(?P<figure>~?\d[\d.,]{0,20} ?[A-Za-z][\w /]{0,20}?)[*_`]{0,2}"
    r"[.,;]?\s*$"
)
"""A rate and nothing else; what stands above it says of what."""
_TEST_ALONE = re.compile(
    r"\s{0,12}(?:[-*•+] |[a-z\d]{1,2}[.)] )?(?P<label>[A-Za-z\d](?:[\w./,=+-]| (?! )|\([^()]*\)){1,40}?)(?P<gap>\s+)"
    r"(?P<figure>~?\d[\d.,]*+ ?[A-Za-z\u00b5/]{1,8})\s*$"
)
_OF_FIO = re.compile(r"\s*[sc]?lat\s*\([mun]?sec\)\s*: min=")
"""Latencies; which of the rates above they belong to is not known."""
_COUNTS_OPERATIONS = re.compile(r"\biops\b|\bi/os? per second\b", re.IGNORECASE)
_COUNTS_REQUESTS = re.compile(
    rf"(?:\b|(?<=[\dkM]))(?:(?:{'|'.join(REQUESTS_PER_S)})\b|{THINGS}s?/s(?:ec)?\b)", re.IGNORECASE
)
_OF_RATE = r"iops|rps|qps|tps|i/os? per second|bandwidth|bw|throughput|rate|speed|average|avg|mean"
_RATE_WORDS = re.compile(rf"\b(?:{_OF_RATE})\b|\b[kmg]?i?b/s(?:ec)?\b", re.IGNORECASE)
"""The least and the greatest rate are no rounds of the mean."""
_METRIC_WORDS = re.compile(
    rf"\b(?:{_OF_RATE}|(?:(?:completion|response|request) )?latency|lat|clat|max(?:imum)?|min(?:imum)?|median|p\d\d(?:\.\d+)?"
    r"|sd|stdev|std_?dev|(?:standard )?deviation|(?:average|avg|mean|min|max|\d\d(?:\.\d+)?thpercentile)latency"
    r"|\d\d(?:\.\d+)?(?:th)? percentile|[munµ]s)\b",
    re.IGNORECASE,
)
_OF_TIME = re.compile(
    r"(?:\b|_)(?:duration|elapsed|run[ _]?time|(?:total|wall|real|execution)[ _]time)(?:\b|_)", re.IGNORECASE
)
OF_SETTING = re.compile(
    r"[%<>]|time-?outs?|interval|delay|period|sleep|budget|target|limit|threshold|slice|window|every|frequency|step|expir"
    r"|warm|ramp|settle|\b(?:uptime|eta|ttl|age|remaining)\b",
    re.IGNORECASE,
)
"""Times that were asked for, and shares that took as long."""
_IN_BRACKETS = re.compile(r"(\([^()]*\))")
_IN_EMPTY = "(). ,/"
"""What brackets still hold when their metric is taken out."""
_PREPOSITION = re.compile(r"(?:^|\s+)(?:of|at|in|for|the)$", re.IGNORECASE)
"""What is left at the end of `Latency at 99 percentile`, less its metric."""
_AMONG = re.compile(r",\s+| and ")
"""What parts the figures behind one label."""
_RUNS = re.compile(r"~?\d[\d.,]*+ ?(?P<unit>[A-Za-z\u00b5/]{1,8})(?:\s+~?\d[\d.,]*+ ?(?P=unit)(?![A-Za-z/]))+")
_BETWEEN_RUNS = re.compile(r"(?<=[A-Za-z])\s+(?=~?\d)")
"""`52.8s 52.8s`."""
_MARKS = re.compile(r"[*`]")
_BULLET = re.compile(r"\s*(?:[-*\u2022+]|(?:\d{1,2}|[a-z])[.)])\s+(?=\S)")
_BARE_LINE = re.compile(
    r"(?P<before>\s*(?:[-*\u2022+] )?)(?P<label>[A-Za-z\d](?:[^\s:=|]| (?! )){0,40}?)(?:\s*[:=]|\s)\s+"
    r"(?:~ ?)?(?P<figures>\d[\d.,]*+[kM]?(?:\s+\d[\d.,]*+[kM]?){0,9})\s*"
)
_BULLET_OF_PAGE = re.compile(r"^(\s+)[o\u25e6\u25aa\u2023\u00b7\u2013](?= +\S)")
"""Of a list within a list, as browsers copy it."""
_BARE = re.compile(r"\d[\d.]*+(?:[kKM](?![A-Za-z]))?")
_OF_REPETITIONS = re.compile(
    r"\b(?:runs?|rounds?|times|iterations?|trials|tries|attempts|repeats|repetitions)\b", re.IGNORECASE
)
_PERCENTILE = re.compile(r"p\d\d(?:\.\d+)?")
_STATISTIC_ALONE = re.compile(STATISTIC, re.IGNORECASE)
SETTING = re.compile(
    rf"{CHANGES}|{SETTINGS}|old|new|none"
    r"|(?:with(?:out)?|w/o?|before|after)(?: (?:this|the|these))?(?: (?:patch(?:es|set)?|change|series|fix))?"
    r"|(?:linux[ -])?v?\d+\.\d+(?!\d*[kMGT]i?[bB])[\w.+-]*",
    re.IGNORECASE,
)
"""Labels that name what was changed, and not what was done. Chosen, as the words of repetitions are."""

_WITH_SETTING = rf"(?:{SETTING.pattern})[ :=]{{1,3}}~?\d[\d.,]*+(?<![.,]) ?[A-Za-z\u00b5/]{{0,8}}(?=\W|$)"
_OF_SETTINGS = re.compile(
    r"\s{0,12}(?:[-*\u2022+] )?(?P<name>\w[^=|;]{1,60}?)(?::|\s{2,}+)\s*+"
    rf"(?P<figures>(?:(?:,?\s++)?{_WITH_SETTING}){{2,}})\s*+$",
    re.IGNORECASE,
)
_EACH_SETTING = re.compile(
    rf"(?P<setting>{SETTING.pattern})[ :=]{{1,3}}(?P<figure>~?\d[\d.,]*+(?<![.,]) ?[A-Za-z\u00b5/]{{0,8}})(?=\W|$)",
    re.IGNORECASE,
)
_OF_SETUP = re.compile(
    r"(?:setup|config(?:uration)?|setting|system|machine|host|variant|kernel|file ?system|scheduler)\b", re.IGNORECASE
)
_SETTING_BEHIND = re.compile(rf"\s+[(\[](?P<setting>{SETTING.pattern})[)\]][.,;]?\s*$", re.IGNORECASE)
_EACH_IN_BRACKETS = re.compile(
    r"(?P<figure>~?\d[\d.,]*+(?<![.,]) ?[A-Za-z\u00b5/]{0,8}) \((?P<setting>[A-Za-z][^()]{0,30})\)(?:,? (?:vs\.?|and) |[,;] )?"
)
_BEFORE_SETTINGS = re.compile(
    rf"\s{{0,12}}(?:[-*\u2022+] )?(?P<name>\w[^=|;:]{{1,60}}?):\s+(?P<figures>(?:{_EACH_IN_BRACKETS.pattern.replace('?P<figure>', '?:').replace('?P<setting>', '?:')}){{2,9}})\.?\s*$"
)
ASSIGNED_MIN = 3
"""Of `kernel=6.8 p99=140us iops=11.9k`, the words that are enough. Chosen."""


_BESIDE_TEST = re.compile(
    rf"(?P<first>{SETTING.pattern})[ ,:/-]+(?P<rest>\S.*)"
    rf"|(?P<before>\S.*?)(?:[ ,:/-]+|\s*[(\[])(?P<last>{SETTING.pattern})[)\]]?",
    re.IGNORECASE,
)
"""`ext4 randread`, `randread (bfq)`."""


class _Place(NamedTuple):
    """What the lines say that a line is indented below."""

    setting: str | None
    name: str
    """The beginning of its workload's."""


class Entry(NamedTuple):
    """What a label and its figure say."""

    name: str
    """Of what was done."""
    op: str
    metric: str
    value: float
    setting: str | None = None
    """None: the line has none of its own."""


def entries(text: str) -> list[Entry]:
    """What a line of such a list says; empty for any other line."""
    return [one for one in _parts(text) if one is not None]


def is_labelled(text: str) -> bool:
    """Whether the line is a label, a colon or the like, and a figure that means something."""
    return bool(_LINE.match(in_seconds(text)) and entries(text))


def _parts(text: str) -> list[Entry | None]:
    """Each figure of a line, None for one that means nothing beside its label."""
    if behind := _SETTING_BEHIND.search(text):
        said = _parts(text[: behind.start()])
        if all(one and one.setting is None for one in said):
            return [one and one._replace(setting=behind["setting"]) for one in said]
    text = _BULLET_OF_PAGE.sub(r"\1-", in_seconds(text))
    if (behind := _NAME_BEHIND.match(text)) and OF_TEST.search(behind["name"]):
        said = _parts(f"{behind['name']}: {behind['figure']}")
        return [one and one._replace(setting=behind["lead"] or one.setting) for one in said]
    if (led := _LED.match(text)) and SETTING.fullmatch(" ".join(led["lead"].split())):
        return [one and one._replace(setting=" ".join(led["lead"].split())) for one in _parts(led["rest"])]
    if _BEFORE_SETTINGS.match(text) and (said := _settings(text)):
        return [*said]
    found = _LINE.match(text)
    if found is None:
        ways = (_statistics, _pairs, _assigned, _settings, _alone, _plain)
        return next(filter(None, ([*way(text)] for way in ways)), [])
    whole = found["label"].strip()
    name = dotted(whole)
    label = name.what if name else whole if " " in whole else whole.replace("_", " ")
    figure = without_spread(found["figure"].strip())
    if found["inside"] and len(quantities(both := f"{figure} ({found['inside']})")) > 1:
        figure = both
    if way := _WAY_WITHIN.fullmatch(figure):
        label, figure = f"{label} {way['way']}", f"{way['number']} {way['unit']}"
    between = _BETWEEN_RUNS if _RUNS.fullmatch(figure) else _AMONG
    parts = (quantities(part) or (None,) for part in with_unit_of_last(between.split(figure)))
    figures = [one for of_part in parts for one in of_part]
    counts = bool(_COUNTS_REQUESTS.search(found["figure"])) and not OF_SETTING.search(label)
    entries = [None if one is None else named(label, one, is_result=counts) for one in figures]
    if name is not None:
        entries = [
            one and one._replace(name=name.name_with("" if one.name == OF_NO_NAME else one.name, one.op))
            for one in entries
        ]
    if SETTING.fullmatch(label):
        of = (found["each"] or OF_NO_NAME).strip()
        entries = [one and one._replace(name=of, setting=label) for one in entries]
        times = [one.value for one in figures if one is not None and one.metric == "ns"]
        if not any(entries) and len(times) == len(figures):
            return [Entry(of, "all", "time_ns", time, label) for time in times]
    if not any(entries) and None not in figures:
        return [None if one is None else time_of(label, one) for one in figures]
    return entries if any(entries) else _ways(text) or _pairs(text) or _plain(text) or entries


def _statistics(text: str) -> Iterator[Entry | None]:
    """What a line says of several figures of one distribution: of a rate the mean and the extremes alone."""
    found = _WITH_STATISTICS.match(text)
    if found is None:
        return
    what = found["what"]
    bare = without_unit(what)
    unit = what[len(bare) :]
    for each in _EACH_STATISTIC.finditer(found["statistics"]):
        one = quantity(with_unit(each["figure"].strip(" ,"), unit))
        name = each["name"].rstrip(".")
        is_rate = not LATENCY.search(what)
        said = None if one is None else named(f"{name} {bare}", one)
        is_mean = name.lower() in ("mean", "avg", "average")
        yield None if is_rate and not (is_mean or _EXTREME.match(f"{name} ")) else said


def _assigned(text: str) -> list[Entry]:
    """What a line of nothing but `kernel=6.8 bs=4k p99=140us iops=11.9k` says."""
    words = [word.partition("=") for word in text.replace(", ", " ").split()]
    if len(words) < ASSIGNED_MIN or not all(name and value for name, _, value in words):
        return []
    setting, cases, found = None, list[str](), list[Entry]()
    for name, _, value in words:
        figure = (
            None if parameter.plain(name) in parameter.AMOUNTS or name.lower() in SETTINGS_OF_CSV else quantity(value)
        )
        label = f"lat {name}" if _STATISTIC_ALONE.fullmatch(name) else name
        if figure is not None and (one := named(label, figure)) is not None:
            found.append(one)
        elif name.lower() in SETTINGS_OF_CSV:
            setting = value
        else:
            cases.append(f"{name}={value}")
    names = {one.name for one in found}
    return [
        one._replace(name=f"{one.name if len(names) > 1 else OF_NO_NAME}[{','.join(cases)}]", setting=setting)
        for one in found
    ]


def _settings(text: str) -> list[Entry]:
    """What a line says of what was changed, behind what was done: `untar  vanilla 41.2s  patched 38.9s`, or
    `seq read: 9.1 GB/s (local), 1.8 GB/s (nfs)`."""
    found = _OF_SETTINGS.match(text) or _BEFORE_SETTINGS.match(text)
    each = _EACH_SETTING if found and found.re is _OF_SETTINGS else _EACH_IN_BRACKETS
    parts = list(each.finditer(found["figures"])) if found else []
    known = [(one["setting"], quantity(one["figure"])) for one in parts]
    if found is None or len({setting for setting, _ in known}) < len(known):
        return []
    name, entries = found["name"].strip(" :"), []
    for setting, one in known:
        said = (
            None
            if one is None
            else named(name, one) or (one.metric == "ns" and Entry(name, "all", "time_ns", one.value))
        )
        if not said:
            return []
        entries.append(said._replace(name=name if said.name == OF_NO_NAME else said.name, setting=setting))
    return entries


def _alone(text: str) -> list[Entry]:
    """The rate that a line holds alone, or the latency with its name."""
    found = _FIGURE_ALONE.match(text)
    known = quantities(found["figure"]) if found else []
    return [Entry(OF_NO_NAME, "all", one.metric, one.value) for one in known if one.metric not in (None, "ns")]


def _plain(text: str) -> list[Entry]:
    """`  read   812 MB/s`: what was done, and its rate."""
    found = _TEST_ALONE.match(text)
    one = quantity(found["figure"]) if found else None
    is_label = found is not None and (len(found["gap"]) > 1 or bool(OF_TEST.search(found["label"])))
    said = (
        named(found["label"], one, is_result=True) or time_of(found["label"], one)
        if found and one and is_label
        else None
    )
    return [said] if said else []


def with_unit_of_last(parts: list[str]) -> list[str]:
    """`1012, 1005, 998 MB/s`: each with the unit of the last, if the others are bare."""
    unit = _BARE.sub("", parts[-1], count=1).strip()
    return [*(f"{part} {unit}" if _BARE.fullmatch(part) else part for part in parts[:-1]), parts[-1]]


def _pairs(text: str) -> list[Entry]:
    """What a line of several labels with their figures says; empty if any of them means nothing."""
    text = _FIO_LATENCIES.sub(_spelled_out, without_markup(text)[0] if "<" in text else text)
    found = _LEAD.match(text)
    lead, pairs = (found["lead"].strip(), found["pairs"]) if found else ("", text.lstrip(" -*•+"))
    parts = [_PAIR.match(_named_rate(part.strip())) for part in _BETWEEN_PAIRS.split(pairs)]
    of_amount = [part for part in parts if part and parameter.plain(part["label"]) in parameter.AMOUNTS]
    parts = [part for part in parts if part not in of_amount]
    figures = [(part["label"].strip(), quantities(part["figure"].strip())) for part in parts if part]
    # Behind a lead and a colon of its own, a single pair is enough.
    least = 1 if of_amount or (lead and ":" in pairs) else 2
    if len(parts) < least or len(figures) < len(parts) or any(len(known) != 1 for _, known in figures):
        return _ways(text)
    of_latency = any(LATENCY.search(label) or _PERCENTILE.fullmatch(label) for label, _ in figures)
    said = [
        named(
            f"lat {label}" if of_latency and _STATISTIC_ALONE.fullmatch(label) else _SHORT.get(label.upper(), label),
            one,
        )
        for label, (one,) in figures
    ]
    entries = [one for one in said if one is not None]
    if len(entries) < len(said):
        return []
    is_sure = all(
        part is not None and (part["sign"] or one.name == OF_NO_NAME or OF_TEST.search(one.name))
        for part, one in zip(parts, entries, strict=True)
    )
    if not is_sure:
        return []
    if (ways := _ways(text)) and not all(part and part["sign"] for part in parts):
        return ways
    if not lead or OF_TEST.search(lead):
        entries = [one._replace(name=lead) if one.name == OF_NO_NAME and lead else one for one in entries]
    else:
        entries = [one._replace(setting=lead) for one in entries]
    case = ",".join(f"{one['label'].strip()}={one['figure'].strip()}" for one in of_amount if one)
    return [one._replace(name=f"{one.name}[{case}]") for one in entries] if case else entries


def _named_rate(part: str) -> str:
    """`510 iops` behind pairs, as a pair; any other part as it is."""
    one = quantity(part)
    return f"rate {part}" if one is not None and one.metric not in (None, "ns") else part


def _ways(text: str) -> list[Entry]:
    """What a line says of reads and of writes: `EVO: read 552 MB/s, write 521 MB/s`."""
    found = _OF_WAYS.match(text)
    parts = _BETWEEN_WAYS.split(found["ways"].strip(" .")) if found else []
    ways = [_A_WAY.fullmatch(part.strip()) for part in parts]
    known = [
        (one["before"] or _SHORT.get((one["behind"] or "").upper(), one["behind"]), quantity(one["figure"]))
        for one in ways
        if one
    ]
    if found is None or len(known) < 2 or len(known) < len(parts):
        return []
    lead = found["lead"].strip()
    entries = [named(f"{lead if OF_TEST.search(lead) else ''} {way}", one) for way, one in known if one is not None]
    whole = [one for one in entries if one is not None]
    if len(whole) < len(known) or len({(one.name, one.op, one.metric) for one in whole}) < len(whole):
        return []
    if OF_TEST.search(lead):
        return whole
    are_apart = len({(one.op, one.metric) for one in whole}) < len(whole)
    return [one._replace(name=one.name if are_apart else OF_NO_NAME, setting=lead) for one in whole]


def _spelled_out(found: re.Match[str]) -> str:
    what = "latency" if found["what"] == "lat" else f"{found['what']}ency"
    return "".join(f", {what} {name}={found[name]} {found['unit']}s" for name in ("min", "max", "mean", "stddev"))


def time_of(label: str, one: Quantity) -> Entry | None:
    """What took so long, by its label: `per-sector: 12 us`, `copy files: 12.3 s`."""
    is_named = bool(_METRIC_WORDS.sub(" ", label).strip(" -,()"))
    if one.metric != "ns" or not one.value > 0 or not is_named or OF_SETTING.search(label):
        return None
    _, op, plain = metric_of(label)
    return Entry(OF_NO_NAME, op, f"{plain}_ns", one.value)


def named(label: str, one: Quantity, *, is_result: bool = False) -> Entry | None:
    """What a figure behind a label says; None if neither states a metric. `is_result`: operations per second are none
    that were asked for, whatever the label."""
    one = elapsed(label, one)
    metric = one.metric_called(label)
    if metric is None and _COUNTS_OPERATIONS.search(label) and one.metric in (None, "operations_per_s"):
        metric = "iops"
    if metric is None and one.metric is None and _COUNTS_REQUESTS.search(label):
        metric = "operations_per_s"
    is_of_something = metric is not None and (
        metric != "operations_per_s" or is_result or OF_RESULT.search(label) or _COUNTS_REQUESTS.search(label)
    )
    is_latency = bool(LATENCY.search(label)) or (metric or "").startswith("latency_ns_p")
    if metric is None or not is_of_something or (one.metric == "ns" and not is_latency):
        return None
    ways = ways_in(label)
    words = _METRIC_WORDS if metric.startswith("latency_ns_") else _RATE_WORDS
    if (extreme := _EXTREME.match(label)) and metric in OF_EXTREMES:
        label, metric = label[extreme.end() :], f"{metric}_{extreme[0][:3].lower()}"
    parts = (
        part if part[:1] == "(" and words.sub("", part).strip(_IN_EMPTY) else words.sub(" ", part)
        for part in _IN_BRACKETS.split(label)
    )
    rest = " ".join("".join(part for part in parts if part.strip(_IN_EMPTY)).strip(" -,").split())
    rest = _PREPOSITION.sub("", rest)
    rest = rest[1:-1] if _IN_BRACKETS.fullmatch(rest) else rest
    op = ways[0] if len(ways) == 1 and metric != "elapsed_s" else "all"
    return Entry(rest or OF_NO_NAME, op, metric, one.value)


def elapsed(label: str, one: Quantity) -> Quantity:
    """A time whose label says that it is how long something took; anything else as it is."""
    is_elapsed = one.metric == "ns" and not LATENCY.search(label) and _OF_TIME.search(label)
    return replace(one, metric="elapsed_s", value=one.value / 1e9) if is_elapsed else one


def _with_units_above(lines: Sequence[Line]) -> list[Line]:
    """The lines, with what a line right above names with bare figures says that these are: `IOPS of 4k reads` above
    `ext4: 312` and `xfs: 298`."""
    made: list[Line] = []
    what = ""
    for line in lines:
        found = _BARE_LINE.fullmatch(line.text) if what else None
        if found is not None:
            latency, _, unit = what.rpartition("(")
            label = f"{found['label']} {latency.removesuffix('time ')}".strip()
            each = without_spaces(found["figures"]).split()
            figures = ", ".join(f"{figure} {unit.rstrip(')')}" for figure in each)
            made.append(Line(line.number, f"{found['before']}{label}: {figures}"))
            continue
        made.append(line)
        is_above = not MEASURED.search(line.text) and len(line.text) <= TITLE_MAX and not entries(line.text)
        what = (stated_in(line.text) if is_above else "") or (what if not line.text.strip() else "")
    return made


def _parse(source: Source, results: Results) -> None:
    last = None
    table = None
    unknown: list[Line] = []
    lines = _with_units_above(list(source.lines(results.problem)))
    changed = _changed(lines)
    repeats = any(map(_OF_REPETITIONS.search, source.text_lines))
    places, heads = _outline(lines)
    names = dict.fromkeys(one.name for line in lines for one in entries(line.text) if one.setting is None)
    given = {**_settings_in(names), **settings_in(names)}
    for line in lines:
        found = entries(line.text)
        if (
            not repeats
            and not _are_runs(line.text, found)
            and len({one._replace(value=0.0) for one in found}) < len(found)
        ):
            results.lines_read.add(line.number)
            results.problem("figures of one kind behind a label: left out; if they are rounds, say 'runs'", line.number)
            continue
        if not found:
            unknown += [line] if _parts(line.text) and line.number not in heads else []
            continue
        results.lines_read.add(line.number)
        if _alone(line.text):
            results.problem("rates that stand alone in their lines are taken as rounds of what stands above them")
        if None in _parts(line.text):
            of_rate = _WITH_STATISTICS.match(line.text)
            what = "of a rate, the mean and the extremes alone are read" if of_rate else ""
            results.problem(what or "a figure does not state what it is: left out", line.number)
        if table is None or last != line.number - 1:
            table = results.table(line.number)
        last = line.number
        for entry in found:
            name, stated = given.get(entry.name, (entry.name, None))
            if line.number in changed and line.number not in places:
                name, stated = OF_NO_NAME, entry.name
            elif re.fullmatch(NUMBERED_ROUND, name):
                name = OF_NO_NAME
            place = places.get(line.number)
            if place is not None:
                is_setting = place.setting == name
                name = place.name or OF_NO_NAME if is_setting or name == OF_NO_NAME else f"{place.name} {name}".strip()
                stated = stated or place.setting
            setting = entry.setting or stated or source.stem_without_round
            known = (row for row in table.rows if (row.setting, row.workload) == (setting, name))
            row = next((row for row in known if (row.key(entry.metric, entry.op), "all") not in row.reported), None)
            row = row or table.row(setting, name)
            ways = ways_in(name) if entry.op == ALL and place else []
            row.add(entry.metric, entry.value, op=ways[0] if len(ways) == 1 else entry.op)
    results.lines_read |= {line.number for line in unknown}
    ranges = [line for line in unknown if RANGE.search(line.text)]
    unknown = [line for line in unknown if line not in ranges]
    if ranges:
        of = counted(len(ranges), "line has a range", "lines have ranges")
        results.problem(f"{of} in place of a figure: left out; give the figure of each run", ranges[0].number)
    if unknown:
        of = counted(len(unknown), "line has a figure", "lines have figures")
        results.problem(f"{of} of no metric that iolab knows: left out, {_quoted(unknown[0].text.strip())!r} first")


def _settings_in(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Names that say what was changed beside what was done: each in two, where one was done under several."""
    parts = {name: found for name in names if (found := _BESIDE_TEST.fullmatch(name))}
    split = {name: (one["rest"] or one["before"], one["first"] or one["last"]) for name, one in parts.items()}
    split = {name: one for name, one in split.items() if OF_TEST.search(one[0]) or is_case(one[0])}
    settings: dict[str, set[str]] = {}
    for rest, setting in split.values():
        settings.setdefault(rest, set()).add(setting.lower())
    return {name: one for name, one in split.items() if len(settings[one[0]]) > 1}


def _are_runs(text: str, entries: Sequence[Entry]) -> bool:
    """Whether figures of one kind follow each other, each with its unit, as close to each other as runs of the same."""
    values = [one.value for one in entries]
    are_one_kind = len({one._replace(value=0.0) for one in entries}) == 1
    return len(values) >= ALIKE_MIN and bool(_RUNS.search(text)) and are_one_kind and max(values) <= ALIKE * min(values)


def _changed(lines: Sequence[Line]) -> set[int]:
    """The lines whose labels name what was changed: each has the same metrics as those right above and below it, and
    another label, which names no test and stands nowhere else. Where labels come again, what stands above them is
    what was changed."""
    blocks: list[list[tuple[int, list[Entry]]]] = []
    last = -1
    for line in lines:
        parts = _parts(line.text)
        found = [one for one in parts if one is not None]
        if found and last == line.number - 1:
            blocks[-1].append((line.number, found))
        elif found:
            blocks.append([(line.number, found)])
        if found or (parts and last == line.number - 1):
            last = line.number
    known: Counter[Entry] = Counter()
    changed: dict[int, list[Entry]] = {}
    for block in blocks:
        said = [found for _, found in block]
        known.update({one._replace(value=0.0) for found in said for one in found})
        kinds = {tuple((one.op, one.metric) for one in found) for found in said}
        names = [one.setting or one.name for found in said for one in found[:1]]
        are_names = not any(
            name.partition("[")[0] == OF_NO_NAME or OF_TEST.search(name) or re.fullmatch(NUMBERED_ROUND, name)
            for name in names
        )
        have_one = all(len({one.name for one in found}) == 1 for found in said)
        have_one = have_one and not all(found[0].setting for found in said)
        if len(kinds) == 1 < len(names) == len(set(names)) and are_names and have_one:
            changed |= dict(block)
    again = any(known[one._replace(value=0.0)] > 1 for found in changed.values() for one in found)
    return set() if again else set(changed)


def _outline(lines: Sequence[Line]) -> tuple[dict[int, _Place], set[int]]:
    """By line of a figure, what the lines above say that it is indented below, where they differ; and these lines.

    One of the levels, or the figures' own labels, names settings: what was changed, else whatever is no test and has
    the same figures below each of its names."""
    above: list[tuple[int, str, int]] = []
    heads: set[int] = set()
    paths: dict[int, tuple[str, ...]] = {}
    said: dict[int, list[Entry]] = {}
    for line, next_line in zip(lines, [*lines[1:], Line(0, "")], strict=True):
        if not line.text.strip():
            continue
        text = _BULLET_OF_PAGE.sub(r"\1-", line.text)
        bullet, depth = _BULLET.match(text), _depth(text)
        while above and above[-1][0] >= depth:
            above.pop()
        text = text[depth:]
        next_depth = _depth(next_line.text)
        if found := entries(line.text):
            paths[line.number] = tuple(name for _, name, _ in above)
            heads |= {number for *_, number in above}
            said[line.number] = found
            # One space more is an oversight.
            text = text.partition(":")[0] if next_depth > depth + 1 else ""
        is_above = next_depth > depth
        if name := _head(text, is_item=bool(bullet), is_above=is_above):
            above.append((depth, name, line.number))
    nested = {number: path for number, path in paths.items() if path}
    while len({path[0] for path in nested.values()}) == 1:
        nested = {number: path[1:] for number, path in nested.items() if path[1:]}
    below: dict[tuple[int, str], set[Entry]] = {}
    for number, path in nested.items():
        for level, name in enumerate(path):
            below.setdefault((level, name), set()).update(one._replace(value=0.0) for one in said[number])
    of_settings, labels = None, {number: said[number][0] for number in nested}
    if not any(one.setting for one in labels.values()):
        of_settings = _level_of_settings(below)
    are_cases = all(_is_test(name) for path in nested.values() for name in path)
    are_labels = (
        of_settings is None and are_cases and not any(one.setting or _is_test(one.name) for one in labels.values())
    )
    places = {}
    for number, path in nested.items():
        setting = path[of_settings] if of_settings is not None and of_settings < len(path) else None
        rest = " ".join(name for level, name in enumerate(path) if level != of_settings)
        places[number] = _Place(labels[number].name if are_labels else setting, rest)
    return places, heads


def _depth(text: str) -> int:
    """Where the line begins, behind its bullet."""
    bullet = _BULLET.match(text)
    return bullet.end() if bullet else len(text) - len(text.lstrip())


def _level_of_settings(below: Mapping[tuple[int, str], set[Entry]]) -> int | None:
    """Which level of lines names what was changed, by what stands below each of its names."""
    levels = [
        [name for at, name in below if at == level] for level in range(1 + max((at for at, _ in below), default=-1))
    ]
    for level, names in enumerate(levels):
        if len(names) > 1 and all(SETTING.fullmatch(name) or _OF_SETUP.match(name) for name in names):
            return level
    for level, names in enumerate(levels):
        kinds = {frozenset(below[level, name]) for name in names}
        if len(names) > 1 and len(kinds) == 1 and not any(map(_is_test, names)):
            return level
    return None


def _is_test(name: str) -> bool:
    return name == OF_NO_NAME or bool(OF_TEST.search(name)) or is_case(name)


def _head(text: str, *, is_item: bool, is_above: bool) -> str:
    """The line as what figures below it may belong to, which are indented if it `is_above` them; empty if it is a
    sentence, or a title, which holds further."""
    short = _MARKS.sub("", text).strip().removesuffix(":" if is_item else "").rstrip()
    is_name = 0 < len(short) <= LINE_QUOTED_MAX and short[-1] not in ".,;:"
    return short if is_name and (is_item or ((is_above or may_name(short)) and not title_of(short))) else ""


def _quoted(text: str) -> str:
    """The line, less the begin of a long one: its figure stands at the end."""
    return text if len(text) <= LINE_QUOTED_MAX else f"...{text[-LINE_QUOTED_MAX:]}"


def _recognises(source: Source) -> bool:
    lines = source.text_lines
    whole = _with_units_above([Line(number, text) for number, text in enumerate(lines, 1)])
    said = [{(one.op, one.metric) for one in entries(line.text)} for line in whole]
    is_list = sum(map(bool, said)) >= LINES_MIN or max(map(len, said), default=0) >= METRICS_MIN
    return is_list and not any(map(_OF_FIO.match, lines))


FORMAT = Format(
    name="list",
    help="lists of figures in a text: a label, a colon or a dash, a figure with its unit; or several on a line",
    recognises=_recognises,
    parse=_parse,
    words=("IOPS:", "Throughput:", "latency:", "MB/s"),
    titled=True,
    marks=True,
)
