"""How examples are found in a document (support/examples.py)."""

from pathlib import Path

from support.examples import Example, examples

DOCUMENT = """# Title

```console
$ iolab list \\
    machines
host
$ echo two
two
```

<!-- not run: it takes an hour -->
```console
$ sleep 3600
```

<!-- exact output -->

```console
$ echo exact
exact
```

```toml
# readers.toml
rounds = 5
```

```toml
rounds = 5
```

```text
$ not a command
```
"""


def found(tmp_path: Path) -> list[Example]:
    (tmp_path / "page.md").write_text(DOCUMENT)
    return examples(tmp_path / "page.md", tmp_path)


def test_marks_decide_what_is_run(tmp_path: Path) -> None:
    assert [example.is_run for example in found(tmp_path)] == [True, False, True, True, False, False]
    assert [example.compares_output for example in found(tmp_path)] == [False, False, True, False, False, False]


def test_a_block_knows_its_line_and_its_commands(tmp_path: Path) -> None:
    first = found(tmp_path)[0]
    assert first.where == "page.md:3"
    assert first.commands == [("iolab list \\\n    machines", "host\n"), ("echo two", "two\n")]


def test_an_experiment_has_a_file_name(tmp_path: Path) -> None:
    assert [example.file_name for example in found(tmp_path) if example.language == "toml"] == ["readers.toml", None]
