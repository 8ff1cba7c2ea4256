"""What a command line gives behind `KEY=`, and settings made of it."""

import tomllib
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.base.toml import value_of, written
from iolab.files.experiment.setting_words import setting_tables


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("64", 64),
        ("0.5", 0.5),
        ("true", True),
        ("'bfq'", "bfq"),
        ("[1, 2]", [1, 2]),
        ("{ a = 1 }", {"a": 1}),
        ("bfq", "bfq"),
        ("4KiB", "4KiB"),
        # TOML has these, and no setting does.
        ("2020-01-01", "2020-01-01"),
        ("inf", "inf"),
        ("1\nother = 2", "1\nother = 2"),
    ],
)
def test_a_value_is_read_and_a_word_is_itself(word: str, value: Any) -> None:
    assert value_of(word) == value
    assert tomllib.loads(f"x = {written(value_of(word))}") == {"x": value}


def test_each_of_the_words_is_a_setting() -> None:
    lines = setting_tables(["scheduler=none", "scheduler=bfq;nr_requests=64"])
    assert tomllib.loads("\n".join(lines))["settings"] == {
        "none": {"scheduler": "none"},
        "bfq-64": {"scheduler": "bfq", "nr_requests": 64},
    }
    with pytest.raises(InputError, match="twice the same setting"):
        setting_tables(["scheduler=none", "scheduler=none"])
