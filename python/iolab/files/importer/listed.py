"""Lists of figures in prose: `- Random Read IOPS: 235k`, `4K Q32 seq write = 419 MiB/s`, `-c 4 -- 640 TPS`. What is
measured stands in the label or in the figure's unit; the rest of the label is the workload's name. A line may have
several, behind a name of their own: `Before: IOPS=3227, BW=12.6MB/s`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from iolab.domain import parameter
from iolab.files.importer.columns import CHANGES, MEASURED, OF_RESULT, OF_TEST, SETTINGS
from iolab.files.importer.csv_layout import SETTING as SETTINGS_OF_CSV
from iolab.files.importer.dotted import dotted
from iolab.files.importer.durations import in_seconds
from iolab.files.importer.metric_names import metric_of
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
    with_unit_of_last,
    without_spread,
    without_unit,
)
from iolab.files.importer.titles import without_markup

OF_NO_NAME = "list"
_LINE = re.compile(
    r"\s{0,12}(?:[-*•+] |\d{1,2}[.)] )?[*_`]{0,2}(?P<label>[A-Za-z\d]"
    r"(?:[^:=|*`]|(?<=\w)=(?=[A-Za-z][\w.-]*+[:;\s]|\w++:\s)){0,100}?)[*_`]{0,2}\s*+"
    r"(?:[:=]|(?<=\s)(?:--|[\u2013\u2014]|\.{3,20}+)(?=\s))\s*+[*_`]{0,2}"
    r"(?:(?:avg|average|mean)\.? )?(?P<figure>~?\d[^:=|*_`]{0,60}?)"
    r"(?P<each>\s+per\s+(?:core|cpu|thread|device|drive|disk|job|node|queue))?"
    r"[*_`]{0,2}(?:\s+(?:[^\w\s(]{1,20}+|<-+ [^:=|]{1,60}))?(?:\s+\((?P<inside>[^()]{1,80})\))?[.,;]?\s*+$",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"\s{0,12}(?:[-*•+] )?[*_`]{0,2}(?P<lead>\w(?:[^:=;,|*`]|(?<=\w)=(?=\w)){0,60}?)"
    r"(?:[*_`]{0,2}\s*+(?:[:.]|--|(?<=\s)-|[\u2013\u2014])[*_`]{0,2}\s+|\s{2,})"
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
WITH_STATISTICS = re.compile(
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
    r"\s{0,12}(?:[-*•+] )?(?P<lead>\w(?:[^:=;,|*`]|(?<=\w)=(?=\w)){0,60}?)"
    r"(?:[:=]| -{1,2}| \u2013| \u2014)\s+(?P<ways>\S.{8,120})$"
)
_BETWEEN_WAYS = re.compile(r"[,;]\s+|\s+/\s+|\s+and\s+|\s+\|\s+")
_WAY = r"(?:(?:\d{1,4} ?[kKM]i?B? )?(?:seq\w*|rand\w*) |\d{1,4} ?[kKM]i?B? )?(?:reads?|writes?)"
_A_WAY = re.compile(
    rf"(?P<before>{_WAY})?:? ?(?P<figure>~?\d[\d.,]{{0,20}} ?(?:[kM] ?)?[A-Za-z/]{{2,8}})"
    rf"(?: \(?(?P<behind>{_WAY}|[rw]\b)\)?)?",
    re.IGNORECASE,
)
_NAME_BEHIND = re.compile(
    r"\s{0,12}(?:[-*\u2022+] |\d{1,2}[.)] )?(?:(?P<lead>\w[^:=;,|]{0,60}?):\s+)?"
    r"(?P<figure>~?\d[\d.,]{0,20} ?(?:[kM] ?)?[A-Za-z\u00b5/]{2,12}) "
    r"(?:(?:for|on|of|in|during)(?: the)? |(?=[a-zA-Z\d ]{0,20}(?:read|write)s?\.?\s*$))"
    r"(?P<name>\w[^:=;,|]{1,60}?)\.?\s*$"
)
"""`1234 IOPS for randread`."""
_SPREAD = re.compile(r"(?P<figure>\d[\d.,]*+[kM]?) ?(?:\u00b1|\+/-) ?\d[\d.,]*+[kM]?(?= ?[A-Za-z\u00b5])")
"""`412±9 MB/s`."""
_FIGURE_FIRST = re.compile(
    r"\s{0,12}(?P<figure>~?\d[\d.,]{0,20} ?[A-Za-z\u00b5/]{1,12}) (?:-{1,2}|[\u2013\u2014]) "
    r"(?P<name>[A-Za-z][^=|]{1,80})$"
)
"""`12 minutes - host mounted volume`."""
_SHORT = {"R": "read", "W": "write"}
_EXTREME = re.compile(r"(?:min(?:imum)?|max(?:imum)?|(?P<max>fastest)|(?P<min>slowest))\b\.? ?", re.I)
_MEDIAN = re.compile(r"(?:50 ?% )?median\b|std[. _-]?dev\w*|standard deviation", re.IGNORECASE)
"""Of a rate, it is none of what iolab has metrics of."""
OF_EXTREMES = ("rate_bytes_per_s", "iops", "operations_per_s")
"""Rates whose least and greatest are figures of their own."""
_STATISTIC_BEHIND = re.compile(r"(?P<what>\w[\w /]{0,40}?) ?[(\[](?P<statistic>min|max|avg|mean)[)\]]", re.IGNORECASE)
"""`iops (min)`."""
_ROUND_BEHIND = re.compile(r"(?<=\S)\s{1,20}\[\d{1,3}/\d{1,3}\](?=\s{0,9}[:=])")
"""Which of how many rounds: `seq-write [2/5] = 1331 MB/s`."""
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
    r"(?P<figure>~?\d[\d.,]*+ ?(?:[kM] )?[A-Za-z\u00b5/]{1,8})\s*$"
)
_DEVICE = re.compile(
    r"(?:/dev/)?(?:disk|drive|ssd|hdd|pool|host|node|server|vm|md|nvme|raid|tank)[\w-]{0,20}|(?:/dev/)?sd[a-z]{1,2}",
    re.I,
)
"""What a figure may be of, right behind it. Chosen."""
_COUNTS_OPERATIONS = re.compile(r"\biops\b|\bi/os? per second\b", re.IGNORECASE)
_COUNTS_REQUESTS = re.compile(
    rf"(?:\b|(?<=[\dkM]))(?:(?:{'|'.join(REQUESTS_PER_S)})\b|{THINGS}s?/s(?:ec)?\b)", re.IGNORECASE
)
_OPTION_OF_FIO = re.compile(
    r"\s*(?:rate_(?:iops(?:_min)?|min|process)|max_latency|latency_(?:target|window|percentile|run))=\S+\s*$"
)
"""What a job is asked for, and nothing that was measured."""
_OF_OPERATIONS = re.compile(
    r"\b(?:f(?:data)?sync|commit|creat(?:e|ion)|unlink|delete|removal|rename|mkdir|lookup|insert|update)s?\b",
    re.IGNORECASE,
)
"""Labels whose figures per second can only be a rate of these: `fsync: 1120/s`."""
_OF_RATE = r"iops|rps|qps|tps|i/os? per second|bandwidth|bw|throughput|rate|speed|average|avg|mean"
_RATE_WORDS = re.compile(rf"\b(?:{_OF_RATE})\b|\b[kmg]?i?b/s(?:ec)?\b", re.IGNORECASE)
"""The least and the greatest rate are no rounds of the mean."""
_METRIC_WORDS = re.compile(
    rf"\b(?:{_OF_RATE}|(?:(?:completion|response|request) )?latency|(?:access|response|resp|seek|service)[ _]?time"
    r"|lat|clat|max(?:imum)?|min(?:imum)?|median"
    r"|p\d\d(?:\.\d+)?"
    r"|sd|stdev|std_?dev|(?:standard )?deviation|(?:average|avg|mean|min|max|\d\d(?:\.\d+)?thpercentile)latency"
    r"|\d\d(?:\.\d+)?(?:th)? percentile|[munµ]s)\b",
    re.IGNORECASE,
)
_OF_TIME = re.compile(
    r"(?:\b|_)(?:duration|elapsed|run[ _]?time|(?:total|wall|real|execution)[ _]time)(?:\b|_)", re.IGNORECASE
)
OF_SETTING = re.compile(
    r"[%<>]|time-?outs?|interval|delay|period|sleep|budget|target|limit|threshold|slice|window(?!s\b)|every|frequency|step|expir"
    r"|warm|ramp|settle|\b(?:uptime|eta|ttl|age|remaining)\b",
    re.IGNORECASE,
)
"""Times that were asked for, and shares that took as long."""
_RATE_WITHIN = re.compile(r"(?<![\w.-])\d[\d.,]*+ ?[kKMGT]?i?B/s")
"""In a label, it is a figure of its own: not all of the line is understood."""
_OF_LINK = re.compile(r"^(?:(?:up|down)link|link|nic|ethernet|network card)(?: speed)?$", re.IGNORECASE)
"""What a machine has, and no result."""
_IN_BRACKETS = re.compile(r"(\([^()]*\))")
_IN_EMPTY = "(). ,/"
"""What brackets still hold when their metric is taken out."""
_PREPOSITION = re.compile(r"(?:^|\s+)(?:of|at|in|for|the)$", re.IGNORECASE)
"""What is left at the end of `Latency at 99 percentile`, less its metric."""
_AMONG = re.compile(r",\s+| and ")
"""What parts the figures behind one label."""
RUNS = re.compile(r"~?\d[\d.,]*+ ?(?P<unit>[A-Za-z\u00b5/]{1,8})(?:\s+~?\d[\d.,]*+ ?(?P=unit)(?![A-Za-z/]))+")
_BETWEENRUNS = re.compile(r"(?<=[A-Za-z])\s+(?=~?\d)")
"""`52.8s 52.8s`."""
_EACH = r"~?\d[\d.,]*+[kM]?(?: ?[A-Za-z\u00b5]{1,5}(?:/s)?)?"
_LEADING = r"(?P<lead>\s{0,12}(?:[-*\u2022+] )?\w[^:=|]{0,60}?):\s+"
_READS_AND_WRITES = re.compile(
    rf"{_LEADING}(?P<read>{_EACH}) ?/ ?(?P<write>{_EACH})"
    r"\s+\(?(?:reads?|r) ?/ ?(?:writes?|w)\)?[.,;]?\s*",
    re.IGNORECASE,
)
_WAYS_BEFORE = re.compile(
    rf"[ ,]\(?(?:reads?|r) ?/ ?(?:writes?|w)\)?:\s++(?P<figures>{_EACH} ?/ ?{_EACH})\s*$", re.IGNORECASE
)
"""`RAID0 r/w: 1100/980 MB/s`."""
_OF_TWO = re.compile(rf"{_LEADING}{_EACH} ?/ ?{_EACH}\s*+", re.IGNORECASE)
_OVER_RUNS = re.compile(
    rf"{_LEADING}(?P<figures>{_EACH}(?:/{_EACH}){{1,9}})"
    r",?\s+\(?(?:over|in|of|for|across)? ?\w{1,8} (?:runs|rounds|times|tries|passes)\)?[.,;]?\s*",
    re.IGNORECASE,
)
_OF_STATISTICS = re.compile(
    rf"{_LEADING}(?P<figures>{_EACH}(?: ?/ ?{_EACH}){{1,5}})[.,;]?\s*",
    re.IGNORECASE,
)
_METRIC_BARE = re.compile(
    r"(?P<lead>\s{0,12}(?:[-*\u2022+] )?)(?P<metric>iops|[tq]ps)\s++(?P<figure>~?\d[\d.,]*+[kM]?)\s*+", re.IGNORECASE
)
"""`iops 41000`."""
_ARROWS = re.compile(r"[-=]+>|\u2192")
_ARROW = re.compile(
    r"(?P<lead>\s{0,12}(?:[-*\u2022+] )?\w[^:=;,|>\u2192]{0,60}?) ?(?:-{1,2}>|=+>|\u2192) ?(?P<rest>[~\w].*)$"
)
"""`6.12 -> Read 1234 MB/s, write 567 MB/s`."""
_FROM_TO = re.compile(
    r"(?P<before>\s{0,12}(?:[-*\u2022+] )?)(?P<first>[\w./+-]{1,40}) (?:-{1,2}>|=+>|\u2192) "
    r"(?P<last>[A-Za-z][\w./+-]{0,40}):?\s+(?P<figure>~?\d[\d.,]*+ ?[A-Za-z\u00b5/]{1,8})\s*$"
)
"""`nfs -> ram  11.7 secs`: what was done, from where to where."""
_ENDS_IN_FIGURE = re.compile(r"(?<![\w.-])\d{1,12}(?:[.,]\d{1,9})?(?: ?[A-Za-z/]{1,8})?$")
_FIGURE_AND_NAME = re.compile(
    r"(?P<figure>~?\d[\d.,]{0,20} ?(?:[kM] ?)?[A-Za-z\u00b5/]{2,12})(?: (?P<name>[A-Za-z][A-Za-z ]{1,40}))?(?:, |$)"
)
_FIGURES_FIRST = re.compile(
    r"(?P<lead>\s{0,12}(?:[-*\u2022+] )?\w[^:=;,|]{0,60}):\s++"
    r"(?P<pairs>(?:~?\d[\d.,]{0,20}+ ?(?:[kM] )?[A-Za-z\u00b5/]{2,12}+(?: [A-Za-z]{1,20}+){0,5}(?:, |$)){2,9})",
)
"""`raid1: 83 seeks/second, 11.9 ms random access time`."""
_A_WAY_FIRST = re.compile(rf"\d ?[A-Za-z/]{{2,8}} \(?(?:{_WAY})\)?(?:,|$)", re.IGNORECASE)
_BULLET_WITHIN = re.compile(r"^(?:(?P<space>\s+)[o\u25e6\u25aa\u2023\u00b7\u2013]|(?P<stars>\*{2,5}))(?= +\S)")
"""Of a list within a list, as browsers copy it, and of org-mode."""
_PERCENTILE = re.compile(r"p\d\d(?:\.\d+)?")
_STATISTIC_ALONE = re.compile(STATISTIC, re.IGNORECASE)
SETTING = re.compile(
    rf"{CHANGES}|{SETTINGS}|old|new|none"
    r"|(?:with(?:out)?|w/o?|before|after)(?: (?:this|the|these))?(?: (?:patch(?:es|set)?|change|series|fix))?"
    r"|(?:linux[ -])?v?\d+\.\d+(?!\d*[kMGT]i?[bB])[\w.+-]*",
    re.IGNORECASE,
)
"""Labels that name what was changed, and not what was done. Chosen, as the words of repetitions are."""

VERSION_OR_SETTING = re.compile(
    rf"\b(?:(?:[A-Z][\w-]{{1,30}} ){{0,2}}[A-Za-z][\w-]{{1,30}} v?\d+\.\d+[\w.-]*"
    rf"(?! ?[kKMGT]i?B?\b)|{SETTINGS}|{CHANGES})(?=[\s,;()]|$)"
)
"""Within a label: `restic 0.9.5 cold cache`, `sync on xfs`."""
_WITH_SETTING = rf"(?:{SETTING.pattern})[ :=]{{1,3}}~?\d[\d.,]*+(?<![.,]) ?(?:[kM] )?[A-Za-z\u00b5/]{{0,8}}(?=\W|$)"
_OF_SETTINGS = re.compile(
    r"\s{0,12}(?:[-*\u2022+] )?(?P<name>\w[^=|;]{1,60}?)(?::|\s{2,}+)\s*+"
    rf"(?P<figures>(?:(?:,?\s++)?{_WITH_SETTING}){{2,}})\s*+$",
    re.IGNORECASE,
)
_EACH_SETTING = re.compile(
    rf"(?P<setting>{SETTING.pattern})[ :=]{{1,3}}"
    r"(?P<figure>~?\d[\d.,]*+(?<![.,]) ?(?:[kM] )?[A-Za-z\u00b5/]{0,8})(?=\W|$)",
    re.IGNORECASE,
)
_SETTING_BEHIND = re.compile(rf"(?<=\S)\s{{1,9}}[(\[](?P<setting>{SETTING.pattern})[)\]][.,;]?\s*$", re.IGNORECASE)
_FIGURE_OF_SETTING = r"(?P<figure>~?\d[\d.,]*+(?<![.,]) ?[A-Za-z\u00b5/]{0,8}) \((?P<setting>[A-Za-z][^()]{0,30})\)"
_EACH_IN_BRACKETS = re.compile(_FIGURE_OF_SETTING)
_BEFORE_SETTINGS = re.compile(
    r"\s{0,12}(?:[-*\u2022+] )?(?P<name>\w[^=|;:]{1,60}?):\s+"
    rf"(?P<figures>(?:{re.sub(r'[?]P<[a-z]+>', '?:', _FIGURE_OF_SETTING)}(?:,? (?:vs\.?|and) |[,;] )?){{2,9}})\.?\s*$"
)
_FIGURE_OF_ONE = re.compile(
    rf"(?P<figure>~?\d[\d.,]*+(?<![.,]) ?[A-Za-z\u00b5/]{{1,8}}) (?P<setting>{SETTING.pattern})"
    r"(?P<end>,? (?:and |vs\.? )?|$)",
    re.IGNORECASE,
)
_FIGURES_OF_SETTINGS = re.compile(
    r"(?P<lead>\s{0,12}(?:[-*\u2022+] )?\w[^=|;:]{1,60}?):\s+"
    rf"(?P<figures>(?:{re.sub(r'[?]P<[a-z]+>', '?:', _FIGURE_OF_ONE.pattern)}){{2,9}})\.?\s*",
    re.IGNORECASE,
)
"""`kernel build: 41.2s before, 38.9s after`."""
_LABELLED = (
    rf"(?P<setting>{SETTING.pattern})(?: (?:version|kernel|build|code|driver))?: "
    r"(?P<figure>~?\d[\d.,]*+(?<![.,]) ?(?:[kM] )?[A-Za-z\u00b5/]{1,8})(?P<end>[,;] (?:and )?|\.?\s*$)"
)
_EACH_LABELLED = re.compile(_LABELLED, re.IGNORECASE)
_LABELLED_SETTINGS = re.compile(
    r"(?P<lead>\s{0,12}(?:[-*\u2022+] )?\w[^:=;|]{1,60}?)(?:,? (?:with|on|in|using|under)(?: the)?|,) "
    rf"(?P<labelled>(?:{re.sub(r'[?]P<[a-z]+>', '?:', _LABELLED)}){{2,9}})",
    re.IGNORECASE,
)
"""`ls with unpatched kernel: 58.5 s, patched: 80.5 s`."""
_REMARK = re.compile(r"(?<=[^\W\d]) \([^()\d]{1,100}\)[.,;]?\s*$")
_PER_SECOND = re.compile(r":\s++\d[\d,]*+\s++\((?P<rate>\d[\d.,]*+) per sec(?:ond|\.)?\)\s*$")
"""`transactions: 48741 (812.34 per sec.)`."""
_AT = re.compile(
    r"(?P<rate>\d[\d.,]{0,20} ?(?:[kM] ?)?(?:IOPS|[kMG]i?B/s)),? @ (?P<time>~?\d[\d.,]{0,20} ?[mnu\u00b5]s\b)",
    re.IGNORECASE,
)
_WAY_FIRST = r"(?:reads?|writes?)[:=]? ?~?\d[\d.,]*+ ?(?:[kM] )?[A-Za-z/]{2,8}"
_TWO_WAYS = re.compile(
    rf"(?P<lead>\s{{0,12}}(?:[-*\u2022+] )?[A-Za-z\d][^:=;,|]{{0,40}}?)(?: -|[:,])? (?P<first>{_WAY_FIRST})[,;]? "
    rf"(?P<second>{_WAY_FIRST})\s*+",
    re.IGNORECASE,
)
"""`SEQ1M Q8T1 read 3493 MB/s write 3003 MB/s`."""
_BEFORE_ASSIGNED = re.compile(r"\s{0,12}(?:[-*\u2022+] )?(?P<lead>[A-Za-z][\w.+-]*(?: [\w.+-]+)?):?\s+(?=[A-Za-z]\w*=)")
ASSIGNED_MIN = 3
"""Of `kernel=6.8 p99=140us iops=11.9k`, the words that are enough. Chosen."""


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
    return [one for one in parts_of(text) if one is not None]


def is_labelled(text: str) -> bool:
    """Whether the line is a label, a colon or the like, and a figure that means something."""
    return bool(_LINE.match(in_seconds(text)) and entries(text))


def parts_of(text: str) -> list[Entry | None]:
    """Each figure of a line, None for one that means nothing beside its label."""
    parts = _parts_of(text)
    found = None if any(parts) or _A_WAY_FIRST.search(text) else _FIGURES_FIRST.fullmatch(text)
    if found is None:
        return parts
    pairs = (f"{one['name'] or 'throughput'} {one['figure']}" for one in _FIGURE_AND_NAME.finditer(found["pairs"]))
    return _parts_of(f"{found['lead']}: {', '.join(pairs)}")


def _parts_of(text: str) -> list[Entry | None]:
    if _OPTION_OF_FIO.match(text):
        return []
    text = _FROM_TO.sub(r"\g<before>\g<first> to \g<last>: \g<figure>", in_seconds(text))
    if (behind := _SETTING_BEHIND.search(text)) and not _SETTING_BEHIND.search(text[: behind.start()]):
        said = parts_of(text[: behind.start()])
        if all(one and one.setting is None for one in said):
            return [one and one._replace(setting=behind["setting"]) for one in said]
    text = _SPREAD.sub(r"\g<figure>", _apart(with_bullet(in_seconds(_ROUND_BEHIND.sub("", text)))))
    if (first := _FIGURE_FIRST.match(text)) and (known := quantity(first["figure"])) and known.metric:
        text = f"{first['name'].replace(':', '')}: {first['figure']}"
    if (behind := _NAME_BEHIND.match(text)) and OF_TEST.search(behind["name"]):
        said = parts_of(f"{behind['name']}: {behind['figure']}")
        return [one and one._replace(setting=behind["lead"] or one.setting) for one in said]
    if (led := _LED.match(text)) and SETTING.fullmatch(" ".join(led["lead"].split())):
        return [one and one._replace(setting=" ".join(led["lead"].split())) for one in parts_of(led["rest"])]
    if _BEFORE_SETTINGS.match(text) and (of_settings := _settings(text)):
        return [*of_settings]
    found = _LINE.match(text)
    if found is None:
        ways = (_statistics, _pairs, _assigned, _settings, alone, _plain)
        return next(filter(None, ([*way(text)] for way in ways)), [])
    whole = found["label"].strip()
    name = dotted(whole)
    label = name.what if name else whole if " " in whole else whole.replace("_", " ")
    figure = without_spread(found["figure"].strip())
    if found["inside"] and len(quantities(both := f"{figure} ({found['inside']})")) > 1:
        figure = both
    if way := _WAY_WITHIN.fullmatch(figure):
        label, figure = f"{label} {way['way']}", f"{way['number']} {way['unit']}"
    between = _BETWEENRUNS if RUNS.fullmatch(figure) else _AMONG
    parts = (quantities(part) or (None,) for part in with_unit_of_last(between.split(figure)))
    figures = [one for of_part in parts for one in of_part]
    of_requests = _COUNTS_REQUESTS.search(found["figure"]) or _OF_OPERATIONS.search(label)
    counts = bool(of_requests) and not OF_SETTING.search(label)
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
    return entries if any(entries) else [*(_ways(text) or _pairs(text) or _plain(text))] or entries


def _apart(text: str) -> str:
    """The line with figures apart that have slashes between them: `612/540 MB/s (read/write)` as reads and writes,
    `41k/39k/40k IOPS over three runs` as runs."""
    text = _PER_SECOND.sub(r" per second: \g<rate> ops/s", text)
    text = _AT.sub(r"\g<rate>, latency \g<time>", text)
    if (found := _ARROW.match(text)) is not None and _names_by_arrow(found["lead"], found["rest"]):
        return _apart(f"{found['lead']}: {found['rest']}")
    if (found := _LABELLED_SETTINGS.fullmatch(_REMARK.sub("", text))) is not None:
        each = _EACH_LABELLED.sub(r"\g<setting> \g<figure>\g<end>", found["labelled"])
        return f"{found['lead'].replace('`', '')}: {each.rstrip(' .')}"
    if (found := _TWO_WAYS.fullmatch(text)) is not None:
        return f"{found['lead']}: {found['first']}, {found['second']}"
    if (found := _FIGURES_OF_SETTINGS.fullmatch(text)) is not None:
        return f"{found['lead']}: " + _FIGURE_OF_ONE.sub(r"\g<figure> (\g<setting>)\g<end>", found["figures"])
    if (found := _METRIC_BARE.fullmatch(text)) is not None:
        return f"{found['lead']}{found['metric']}: {found['figure']}"
    if (found := _READS_AND_WRITES.fullmatch(_WAYS_BEFORE.sub(r": \g<figures> (r/w)", text))) is not None:
        read, write = with_unit_of_last([found["read"], found["write"]])
        return f"{found['lead']}: read {read}, write {write}"
    if (found := _OVER_RUNS.fullmatch(text)) is not None:
        return f"{found['lead']}: {', '.join(with_unit_of_last(found['figures'].split('/')))}"
    return text


def _names_by_arrow(lead: str, rest: str) -> bool:
    """Whether what stands before an arrow is a name, and no earlier figure of what stands behind it."""
    may_be_figure = bool(_ENDS_IN_FIGURE.search(lead)) and rest[:1] in "~0123456789"
    return (
        bool(MEASURED.search(rest))
        and not _ARROWS.search(rest)
        and not (may_be_figure and (OF_TEST.search(lead) or len(MEASURED.findall(rest)) < 2))
    )


def with_statistics(text: str, names: Sequence[str]) -> str:
    """The line with the statistics that a line above names, or its own label, beside its figures: `ext4: 1.1/9.8 ms`
    as `ext4: p50=1.1 ms, p99=9.8 ms`; any other line as it is."""
    found = _OF_STATISTICS.fullmatch(text)
    figures = with_unit_of_last([one.strip() for one in found["figures"].split("/")]) if found else []
    known = [quantity(part) for part in figures]
    if found is None or len(figures) != len(names) or any(one is None or one.metric != "ns" for one in known):
        return text
    return f"{found['lead']}: {', '.join(f'{name}={one}' for name, one in zip(names, figures, strict=True))}"


def with_ways(text: str) -> str:
    """The line with what a line above says of two figures: `ext4: 512 MB/s / 300 MB/s` are of reads and of writes."""
    return f"{text.rstrip()} (read/write)" if _OF_TWO.fullmatch(text) else text


def with_bullet(text: str) -> str:
    """The line with `-` in place of another bullet, indented as deep as it stands in its list."""
    return _BULLET_WITHIN.sub(lambda found: f"{found['space'] or ' ' * len(found['stars'])}-", text)


def _statistics(text: str) -> Iterator[Entry | None]:
    """What a line says of several figures of one distribution: of a rate the mean and the extremes alone."""
    found = WITH_STATISTICS.match(text)
    if found is None:
        return
    what = found["what"]
    parts = [*_EACH_STATISTIC.finditer(found["statistics"])]
    known = [quantity(each["figure"].strip(" ,")) for each in parts]
    are_times = all(one is not None and one.metric == "ns" for one in known)
    if are_times and found["statistics"].count("=") == len(known) and not LATENCY.search(what):
        return  # Pairs behind a name.
    bare = without_unit(what)
    unit = what[len(bare) :]
    for each in parts:
        one = quantity(with_unit(each["figure"].strip(" ,"), unit))
        name = each["name"].rstrip(".")
        is_rate = not LATENCY.search(what)
        said = None if one is None else named(f"{name} {bare}", one)
        is_mean = name.lower() in ("mean", "avg", "average")
        yield None if is_rate and not (is_mean or _EXTREME.match(f"{name} ")) else said


def _assigned(text: str) -> list[Entry]:
    """What a line of nothing but `kernel=6.8 bs=4k p99=140us iops=11.9k` says."""
    lead, given = "", text
    if (led := _BEFORE_ASSIGNED.match(text)) is not None:
        lead, given = led["lead"], text[led.end() :]
    words = [word.partition("=") for word in given.replace(", ", " ").split()]
    least = ASSIGNED_MIN - bool(lead)
    if len(words) < least or not all(name[:1].isalpha() and value for name, _, value in words):
        return []
    of_test = bool(lead and OF_TEST.search(lead))
    setting, cases, found = None if of_test else lead or None, list[str](), list[Entry]()
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
    case = f"[{','.join(cases)}]" if cases else ""
    of_no_name = lead if of_test else OF_NO_NAME
    return [one._replace(name=f"{one.name if len(names) > 1 else of_no_name}{case}", setting=setting) for one in found]


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


def alone(text: str) -> list[Entry]:
    """The rate that a line holds alone, or the latency with its name."""
    found = _FIGURE_ALONE.match(text)
    known = quantities(found["figure"]) if found else []
    return [Entry(OF_NO_NAME, "all", one.metric, one.value) for one in known if one.metric not in (None, "ns")]


def _plain(text: str) -> list[Entry]:
    """`  read   812 MB/s`: what was done, and its rate."""
    found = _TEST_ALONE.match(text)
    one = quantity(found["figure"]) if found else None
    is_label = found is not None and (
        len(found["gap"]) > 1 or bool(OF_TEST.search(found["label"]) or _DEVICE.fullmatch(found["label"]))
    )
    if found is None or one is None or not is_label:
        return []
    label = found["label"]
    said = named(label, one, is_result=True) or time_of(label, one)
    if said and SETTING.fullmatch(label):
        said = said._replace(name=OF_NO_NAME, metric="time_ns" if one.metric == "ns" else said.metric, setting=label)
    return [said] if said else []


def _pairs(text: str) -> list[Entry]:
    """What a line of several labels with their figures says; empty if any of them means nothing."""
    text = _FIO_LATENCIES.sub(_spelled_out, without_markup(text)[0] if "<" in text else text)
    found = _LEAD.match(text)
    lead, pairs = (found["lead"].strip(), found["pairs"]) if found else ("", text.lstrip(" -*•+"))
    parts = [_PAIR.match(_named_rate(part.strip())) for part in _BETWEEN_PAIRS.split(pairs)]
    of_amount = [part for part in parts if part and parameter.plain(part["label"]) in parameter.AMOUNTS]
    parts = [part for part in parts if part not in of_amount]
    figures = [(part["label"].strip(), quantities(part["figure"].strip())) for part in parts if part]
    # Behind a lead, a single pair with a sign of its own is enough.
    least = 1 if of_amount or (lead and parts and parts[0] and parts[0]["sign"]) else 2
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
    if "=" in lead:
        entries = [one._replace(name=f"{one.name}[{lead}]") for one in entries]
    elif not lead or OF_TEST.search(lead):
        names = [lead if one.name == OF_NO_NAME else f"{lead} {one.name}".strip() for one in entries]
        entries = [one._replace(name=name or OF_NO_NAME) for one, name in zip(entries, names, strict=True)]
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
    if VERSION_OR_SETTING.search(label):
        return Entry(label, "all", "time_ns", one.value)
    _, op, plain = metric_of(label)
    return Entry(OF_NO_NAME, op, f"{plain}_ns", one.value)


def named(label: str, one: Quantity, *, is_result: bool = False) -> Entry | None:
    """What a figure behind a label says; None if neither states a metric. `is_result`: operations per second are none
    that were asked for, whatever the label."""
    if _OF_LINK.search(label) or _RATE_WITHIN.search(label):
        return None
    if behind := _STATISTIC_BEHIND.fullmatch(label):
        label = f"{behind['statistic']} {behind['what']}"
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
    if _MEDIAN.match(label) and metric in OF_EXTREMES:
        return None
    if (extreme := _EXTREME.match(label)) and metric in OF_EXTREMES:
        label, metric = label[extreme.end() :], f"{metric}_{extreme.lastgroup or extreme[0][:3].lower()}"
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
