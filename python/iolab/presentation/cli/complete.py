"""What a shell completes after `iolab`: commands and options come from their declarations, names and runs from here.

A shell calls iolab with the variable _IOLAB_COMPLETE; typer answers with what these functions find. Whatever goes wrong
in them, the shell shows nothing: no line of a user's is lost to an error of ours.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script

from iolab.base import beneath, output_file
from iolab.base.errors import InputError, IolabError, unknown

VARIABLE = "_IOLAB_COMPLETE"
ENTRIES_MAX = 10_000
"""The entries of one directory that are read, so that a key press is answered soon."""
PLACES = {
    "bash": "~/.local/share/bash-completion/completions/iolab",
    "zsh": "~/.zfunc/_iolab",
    "fish": "~/.config/fish/completions/iolab.fish",
}
"""Where each shell looks by itself; no start-up file of the user's is changed."""
TO_DO = {
    "bash": "a new bash loads it, if the package bash-completion is installed; else source it in ~/.bashrc",
    "zsh": "zsh loads it if ~/.zshrc has: fpath+=~/.zfunc; autoload -Uz compinit; compinit",
    "fish": "a new fish loads it",
}
# Words are taken from the line: bash breaks them at colons too, and model:NAME has one.
BASH = """\
_iolab_completion() {
    local line=${COMP_LINE:0:COMP_POINT} words word before
    read -ra words <<< "$line"
    local count=$((${#words[@]} - 1))
    [[ $line == *[[:space:]] ]] && count=$((count + 1))
    local IFS=$'\\n'
    COMPREPLY=($(env COMP_WORDS="$line" COMP_CWORD=$count _IOLAB_COMPLETE=complete_bash "$1" 2> /dev/null))
    word=${words[$count]}
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        before=${word%"${word##*:}"}
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
    fi
}
complete -o default -F _iolab_completion iolab
"""

# Shells are known to typer from here on.
completion_init()

Names = Callable[[str], list[str]]


def script(shell: str) -> str:
    """What the shell has to run to complete iolab's command lines. InputError if the shell is not known."""
    if shell not in PLACES:
        raise InputError(f"{shell}: {unknown('shell', shell, PLACES)}", where="completion")
    if shell == "bash":
        return BASH
    return get_completion_script(prog_name="iolab", complete_var=VARIABLE, shell=shell) + "\n"


def _show(shell: str | None) -> None:
    if shell is not None:
        print(script(shell), end="")
        raise typer.Exit


def _install(shell: str | None) -> None:
    if shell is not None:
        text = script(shell)
        path = Path(PLACES[shell]).expanduser()
        try:
            beneath.make_directories(path.parent)
        except OSError as error:
            raise output_file.refused(error, path.parent) from None
        output_file.write(path, text.encode())
        print(f"Completion: {path}\n{TO_DO[shell]}")
        raise typer.Exit


Show = Annotated[
    str | None,
    typer.Option(
        "--show-completion",
        metavar="bash|zsh|fish",
        help="Print the script that completes iolab's command lines in this shell, and exit.",
        callback=_show,
        is_eager=True,
    ),
]

Install = Annotated[
    str | None,
    typer.Option(
        "--install-completion",
        metavar="bash|zsh|fish",
        help="Write that script where the shell looks for it, and exit.",
        callback=_install,
        is_eager=True,
    ),
]


def _answering(find: Names) -> Names:
    """The names that begin as the word does; none if they can't be had."""

    def answer(incomplete: str) -> list[str]:
        with suppress(IolabError, OSError):
            return [name for name in find(incomplete) if name.startswith(incomplete)]
        return []

    return answer


@_answering
def machines(_: str) -> list[str]:
    """For --machine."""
    from iolab.domain.machine import MODEL_PREFIX
    from iolab.files import machine_file

    return ["host", *(f"{MODEL_PREFIX}{name}" for name in machine_file.names())]


@_answering
def probes(_: str) -> list[str]:
    """For --probe."""
    from iolab.domain.probe import PROBES

    return list(PROBES)


@_answering
def tables(_: str) -> list[str]:
    """For --as."""
    from iolab.presentation.table import FORMATS

    return list(FORMATS)


@_answering
def metrics(_: str) -> list[str]:
    """For --metric: names of metrics, without phase and operation."""
    from iolab.domain.metric import METRICS

    return list(METRICS)


@_answering
def figures(_: str) -> list[str]:
    """For `iolab reproduce`."""
    from iolab.studies.reproduction import names

    return names()


@_answering
def claims(_: str) -> list[str]:
    """For `iolab claim`."""
    from iolab.studies.claims.library import names

    return names()


@_answering
def lists(_: str) -> list[str]:
    """For `iolab list`."""
    return ["machines", "devices", "kernels", "experiments", "paths", "workloads", "controls", "probes", "metrics"]


@_answering
def experiments(incomplete: str) -> list[str]:
    """For `iolab run`: files of experiments and jobs here, and the experiments that come with iolab."""
    from iolab.base import data

    files = [path for path in _beside(incomplete) if path.endswith((".toml", ".fio"))]
    return [*files, *([] if os.sep in incomplete else data.experiments())]


@_answering
def cost_paths(_: str) -> list[str]:
    """For `iolab cost --paths`."""
    from iolab.base import data

    return list(data.cost_paths())


@_answering
def controls(_: str) -> list[str]:
    """For CONTROL=VALUE."""
    from iolab.domain.control import CONTROLS

    return [f"{name}=" for name in CONTROLS]


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """For --baseline, --good and --bad: the settings of experiments and runs that stand before it on the line."""
    # An option that still lacks its value leaves the line unparsed, in `args`.
    return list(dict.fromkeys(name for word in ctx.args for name in _settings_of(word)(incomplete)))


def _settings_of(word: str) -> Names:
    @_answering
    def names(_: str) -> list[str]:
        from iolab.files.experiment.parse import find, load
        from iolab.files.store import read

        path = Path(word)
        return list((read(path).experiment if _is_run(word) else load(find(path))).settings)

    return names


@_answering
def runs_and_files(incomplete: str) -> list[str]:
    """For what takes a run or a file: run directories, also those in a directory that is named, and files."""
    found = []
    for path in _beside(incomplete):
        if not os.path.isdir(path) or _is_run(path):  # noqa: PTH112 (as typed, with ./ in front for instance)
            found.append(path)
        else:
            found += [inner for inner in _entries(path + os.sep) if _is_run(inner)]
    return found


@_answering
def runs(incomplete: str) -> list[str]:
    """For what takes a run directory only."""
    return [path for path in runs_and_files(incomplete) if _is_run(path)]


def _beside(incomplete: str) -> Iterator[str]:
    """What lies in the directory that the word names, and begins as it does."""
    directory, slash, name = incomplete.rpartition(os.sep)
    for path in _entries(directory + slash):
        if path.startswith(incomplete) and (name or not path[len(directory + slash) :].startswith(".")):
            yield path


def _entries(directory: str) -> list[str]:
    """`directory` as typed, "" for here, before each name."""
    with suppress(OSError):
        return [directory + name for name in sorted(os.listdir(directory or "."))[:ENTRIES_MAX]]  # noqa: PTH208
    return []


def _is_run(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "journal.jsonl"))  # noqa: PTH113, PTH118
