"""The layers that an experiment puts between its target and the drives, under each setting."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.base.errors import InputError
from iolab.base.problem import Path, Problems
from iolab.base.toml import TomlTable
from iolab.domain import layer
from iolab.domain.trial import ScratchTarget, Target
from iolab.files.experiment.options import ScratchOptions
from iolab.files.experiment.setting import Setting


def check_given(options: ScratchOptions, problems: Problems) -> bool:
    """Whether [target] has layers as they can be; each that is wrong is noted on its line."""
    before = len(problems.found())
    _check(options.layers, options.size, ("target", "layers"), problems)
    return len(problems.found()) == before


def check(target: Target, settings: Sequence[Setting], problems: Problems) -> dict[str, ScratchTarget]:
    """The target under each setting whose layers can be; the others are noted."""
    found = {}
    for setting in settings:
        value = setting.controls.get("layers")
        path = ("settings", setting.written_as, "layers")
        if not isinstance(target, ScratchTarget):
            if value is not None:
                what = f"a {target.kind} target has none: iolab puts layers on devices of its own only"
                problems.add(path, f'{what}; use [target] kind = "scratch"')
            continue
        try:
            layers = target.layers if value is None else layer.changed(target.layers, value)
        except InputError as error:
            problems.add(path, error.what)
            continue
        before = len(problems.found())
        if value is not None:
            _check(layers, target.size_bytes, path, problems)
        if len(problems.found()) == before:
            found[setting.name] = target.model_copy(update={"layers": layers})
    return found


def _check(layers: Sequence[TomlTable], size_bytes: int, path: Path, problems: Problems) -> None:
    layer.check(layers, size_bytes, lambda place, what: problems.add((*path, *place), what))
