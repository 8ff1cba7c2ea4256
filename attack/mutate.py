"""Changes to a file: of bytes, of lines, of tokens, of what a JSON document says, and growth beyond all reason."""

import json
import random
import re
from typing import Any

TOKEN = re.compile(rb"[A-Za-z_]+|\d+(?:\.\d+)?|[ \t]+|\n|.", re.S)
NUMBER = re.compile(rb"\d+(?:\.\d+)?")
SIZE_MAX = 256 << 10
EXTREMES = [
    one.encode()
    for one in (
        *("0", "-1", "1e308", "5e-324", "1e999", "-0.0", "nan", "inf", "0x7f", "1_000", "1.2.3", "9" * 30, "9" * 5000),
        *("9223372036854775808", "-9223372036854775809", "18446744073709551616", "true", "null", "[]", "{}", "", "-"),
        *("%", "{", "}", "[", "]", '"', "'", "\\", ",", ";", "=", "#", "\t", "\n", "\r", "\r\n", "\0", " "),
        *("\x1b[31m", "\x1b]0;x\x07", "<b>", "<script>", "=1+1", "é", "\u202e", "\ufeff", "../..", "/dev/zero", "[[[["),
        *("$(id)", "${HOME}", "%s", "100%", "1KiB", "99999999EiB", "1e30s", "1-0", "0-4294967295"),
    )
] + [b"\xff\xfe", b"\x80", b"\xc3"]
VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1e308,
        5e-324,
        10**30,
        2**63,
        2**64,
        -(2**63) - 1,
        0.5,
        "",
        "x",
        "\0",
        "\x1b[2J",
        "9" * 5000,
    ),
    *([], {}, [None], {"a": {}}, ["x"] * 50, "../../x", float("nan"), float("inf"), [[[[[[]]]]]]),
]


def mutated(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """One to four changes; `others` are files whose pieces may be put in."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 4])):
        content = rng.choice(KINDS)(content, rng, others)[:SIZE_MAX]
    return content


def mutated_json(content: bytes, rng: random.Random) -> bytes:
    """With a value somewhere inside replaced; as bytes when it is no JSON."""
    try:
        document = json.loads(content)
    except ValueError:
        return mutated(content, rng, [])
    return json.dumps(_replaced(document, rng), ensure_ascii=False).encode()


def _replaced(document: Any, rng: random.Random) -> Any:
    places = list(_places(document))
    if not places:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    change = rng.random()
    if change < 0.7:
        holder[key] = rng.choice(VALUES)
    elif change < 0.85:
        del holder[key]
    else:
        other, name = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[name]))
    return document


def _places(document: Any) -> Any:
    keys = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield document, key
        yield from _places(document[key])


def _flip(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    changed = bytearray(content)
    for _number in range(rng.choice([1, 1, 2, 5])):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _remove(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + content[at + rng.choice([1, 2, 8, 100]) :]


def _insert(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice(EXTREMES) + content[at:]


def _splice(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    other = rng.choice(others or [content])
    at, begin = rng.randrange(len(content) + 1), rng.randrange(len(other) + 1)
    return content[:at] + other[begin : begin + rng.choice([10, 100, 2000])] + content[at:]


def _lines(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    lines = content.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(6)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[other])
    elif kind == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 3:
        lines[at : at + 2] = [b"".join(lines[at : at + 2])]
    elif kind == 4:
        rng.shuffle(lines)
    else:
        lines = [b"> " + line for line in lines]
    return b"\n".join(lines)


def _tokens(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    tokens = TOKEN.findall(content)
    if not tokens:
        return content
    at = rng.randrange(len(tokens))
    kind = rng.randrange(4)
    if kind == 0:
        del tokens[at]
    elif kind == 1:
        tokens[at] = rng.choice(EXTREMES)
    elif kind == 2:
        other = rng.randrange(len(tokens))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    else:
        tokens[at] = rng.choice(TOKEN.findall(rng.choice(others or [content])) or [b""])
    return b"".join(tokens)


def _numbers(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    found = list(NUMBER.finditer(content))
    if not found:
        return content
    one = rng.choice(found)
    return content[: one.start()] + rng.choice(EXTREMES) + content[one.end() :]


def _grow(content: bytes, rng: random.Random, _: list[bytes]) -> bytes:
    """A piece repeated until it is large: what is quadratic shows."""
    if rng.random() < 0.9:
        return _tokens(content, rng, _)
    at = rng.randrange(len(content) + 1)
    piece = content[at : at + rng.choice([1, 1, 2, 30, 300])] or b" "
    if rng.random() < 0.5:
        piece = rng.choice([b" ", b"9", b"[", b"{", b'"', b",", b"\n", b"-", b".", b"(", b"\t", b"%", b"=", b"# "])
    return content[:at] + piece * (rng.choice([1000, 20_000, SIZE_MAX // 2]) // len(piece)) + content[at:]


KINDS = [_flip, _cut, _remove, _insert, _splice, _lines, _tokens, _tokens, _numbers, _numbers, _grow]
