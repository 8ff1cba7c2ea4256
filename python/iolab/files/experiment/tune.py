"""The table [tune] of an experiment: which settings `iolab tune` may try, for what, and how long."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from iolab.base.errors import InputError, unknown
from iolab.base.option import Duration, Options, option, shown
from iolab.base.plain_text import counted
from iolab.base.problem import Problems
from iolab.base.quantity import parse_bytes, parse_duration_ns
from iolab.base.toml import TomlTable
from iolab.domain.control import CONTROLS
from iolab.domain.control.control import Range
from iolab.domain.machine import kind_of
from iolab.domain.metric import METRICS, parse_key
from iolab.domain.trial.trial import Kind
from iolab.domain.tune.space import OPERATORS, Parameter, Requirement, Space, nested
from iolab.domain.tune.tuning import Budget, Tuning
from iolab.domain.verdict.looks import FIRST_LOOK
from iolab.domain.workload import KINDS
from iolab.files.experiment.grid import VALUES_MAX, grid
from iolab.files.experiment.options import read_share
from iolab.files.experiment.setting import read_settings
from iolab.files.experiment.workloads import Workload, variants

KEYS_MAX = 60
TABLE = ("tune",)
SPACE = (*TABLE, "space")
NAMED = {"scheduler": "scheduler.name"}
"""A key that has keys below it, and where its own value stands then."""
EXAMPLE = "such as [tune.space] with nr_requests = { low = 16, high = 512, log = true }"


class TuneOptions(Options):
    """The table [tune]."""

    space: TomlTable = option(
        {}, "The keys to try, [tune.space]: each a list of values, or a table.", default_is="must be given"
    )
    objectives: list[str] | None = option(
        None,
        "Keys of metrics to improve; with several, the answer is a Pareto front.",
        default_is="the first that the experiment compares",
        expected='a list such as ["rate_bytes_per_s"]',
    )
    no_worse: TomlTable = option(
        {}, "By key of a metric, how much worse than the default it may get.", default_is="no limit"
    )
    require: list[str] = option(
        [],
        "Conditions that the values have to fulfil together.",
        default_is="nothing",
        expected='a list such as ["dirty_background_ratio < dirty_ratio"]',
    )
    trials: int = option(
        150, "Most trials of the search, including those of the default.", ge=6, le=100_000, expected="6 to 100000"
    )
    time: Duration | None = option(None, "Most time of the search's trials.", unit="ns", default_is="no limit")
    per_round: int = option(
        5, "Candidates beside the default in a round of the search.", ge=1, le=100, expected="1 to 100"
    )
    key_rounds: int = option(
        2, "Most rounds of mixtures, which show the keys that matter.", ge=0, le=100, expected="0 to 100"
    )
    confirm: int = option(
        12,
        "Most fresh rounds of winner against default.",
        ge=FIRST_LOOK,
        le=1000,
        expected=f"{FIRST_LOOK} to 1000",
    )
    first: str | None = option(
        None, "A simulated machine to search on first: model:NAME.", default_is="none", expected="model:NAME"
    )


class KeyOptions(Options):
    """A key of [tune.space] that is a table."""

    values: list[Any] | None = option(None, "The values to try.", default_is="a range", expected="a list of values")
    low: Any = option(None, "The smallest value of a range.", default_is="the control's own, if it has one")
    high: Any = option(None, "The largest value.", default_is="the control's own, if it has one")
    step: Any = option(None, "Distance from one value of the range to the next.", default_is="a sixteenth of the range")
    log: bool | None = option(
        None, "Each value twice the one before.", default_is="as the control's own range, else false"
    )
    when: TomlTable = option({}, "The key counts only if these keys have these values.", default_is="always")


def read_tuning(
    given: object,
    workloads: list[Workload],
    compared: list[str] | None,
    problems: Problems,
    kind: Kind,
) -> Tuning | None:
    """The table as a `Tuning`, or None with what is wrong noted."""
    if not isinstance(given, dict):
        problems.add(TABLE, f"{shown(given)} given; expected a table, [tune]")
        return None
    options = problems.validated(TuneOptions, given, TABLE, "tune")
    if len(workloads) != 1:
        what = f"{counted(len(workloads), 'workload')}; a tuner makes one better; several at once are jobs of kind mix"
        problems.add(TABLE, what)
    space = given.get("space")
    if not isinstance(space, dict) or not space:
        problems.add(SPACE, f"no key to try; expected some, {EXAMPLE}")
        return None
    if len(space) > KEYS_MAX:
        problems.add(SPACE, f"{counted(len(space), 'key')}; expected at most {KEYS_MAX}")
        return None
    parameters = _parameters(space, workloads, problems, kind)
    if options is None or not workloads:
        return None
    workload = workloads[0].compiled
    objectives = options.objectives or [*(compared or ()), *KINDS[workload.kind].compared][:1]
    if not objectives:
        problems.add((*TABLE, "objectives"), f"kind {workload.kind} compares nothing of itself; name a metric")
    limits = _limits(options.no_worse, problems)
    for key in objectives:
        _check_objective(key, (*TABLE, "objectives"), problems)
    if options.first is not None and kind_of(options.first) != "model":
        problems.add((*TABLE, "first"), f"{shown(options.first)} given; expected a simulated machine, model:NAME")
    requirements = _requirements(options.require, parameters, problems)
    return Tuning(
        workload=workloads[0].name,
        space=Space(tuple(parameters), tuple(requirements)),
        objectives=tuple(objectives),
        limits=limits,
        budget=Budget(
            trials=options.trials,
            time_s=None if options.time is None else options.time / 1e9,
            per_block=options.per_round,
            key_rounds=options.key_rounds,
            confirm=options.confirm,
        ),
        first=options.first,
    )


def _check_objective(text: str, path: tuple[str, ...], problems: Problems) -> None:
    try:
        metric = METRICS[parse_key(text).metric]
    except InputError as error:
        problems.add(path, str(error))
        return
    if metric.better is None:
        problems.add(path, f"{text}: neither more nor less of it is better")


def _limits(table: TomlTable, problems: Problems) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, given in table.items():
        path = (*TABLE, "no_worse", key)
        _check_objective(key, path, problems)
        try:
            share = read_share(given)
        except ValueError:
            share = None
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 10:
            problems.add(path, f'{shown(given)} given; expected a share such as "5%" or 0.05')
        else:
            found[key] = float(share)
    return found


def _parameters(space: TomlTable, workloads: list[Workload], problems: Problems, kind: Kind) -> list[Parameter]:
    found: dict[str, Parameter] = {}
    for key, given in space.items():
        path = (*SPACE, key)
        if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key):
            problems.add(path, "no key of a setting; expected such as nr_requests or scheduler.slice_idle")
            continue
        try:
            parameter = _parameter(key, given, found, path, problems)
        except (InputError, ValueError) as error:
            problems.add(path, str(error))
            continue
        if parameter is not None:
            found[parameter.key] = parameter
            _check_values(key, parameter, found, workloads, problems, kind)
    return list(found.values())


def _parameter(
    key: str, given: object, before: dict[str, Parameter], path: tuple[str, ...], problems: Problems
) -> Parameter | None:
    if isinstance(given, list):
        given = {"values": given}
    if not isinstance(given, dict):
        raise InputError(f"{shown(given)} given; expected a list of values, or a table with low and high")
    options = problems.validated(KeyOptions, given, path, "a key of [tune.space]")
    if options is None:
        return None
    when = _when(options.when, before)
    if key.startswith("scheduler.") and not when:
        raise InputError('a tunable belongs to one scheduler; name it: when = { scheduler = "bfq" }')
    ranged = [name for name in ("low", "high", "step", "log") if getattr(options, name) is not None]
    if options.values is not None:
        if ranged:
            raise InputError(f"values and {' and '.join(ranged)} given; keep the values or the range")
        return _of_values(key, options.values, when)
    control = CONTROLS.get(key)
    own = None if control is None else control.tried
    if not ranged and isinstance(own, tuple):
        return Parameter(_place(key, own), own, ordered=False, when=when)
    own = own if isinstance(own, Range) else None
    low = options.low if options.low is not None else None if own is None else own.low
    high = options.high if options.high is not None else None if own is None else own.high
    if low is None or high is None:
        missing = "low and high" if low is None and high is None else "low" if low is None else "high"
        raise InputError(f"no {missing}, and no range of its own; give {missing}, or values")
    log = options.log if options.log is not None else own is not None and own.log
    values, sizes = grid(low, high, options.step, log=log)
    return Parameter(key, values, ordered=True, sizes=sizes, when=when)


def _of_values(key: str, values: list[Any], when: dict[str, frozenset[int]]) -> Parameter:
    if not 2 <= len(values) <= VALUES_MAX:
        raise InputError(f"{counted(len(values), 'value')}; expected 2 to {VALUES_MAX}")
    if any(value in values[:place] for place, value in enumerate(values)):
        raise InputError("the same value twice")
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    ordered = numbers and values == sorted(values) and len(values) > 2
    sizes = tuple(map(float, values)) if numbers else None
    return Parameter(_place(key, values), tuple(values), ordered=ordered, sizes=sizes, when=when)


def _place(key: str, values: Iterable[Any]) -> str:
    """Where the key's value stands in a setting: names, where the setting may have other keys below."""
    return NAMED[key] if key in NAMED and all(isinstance(value, str) for value in values) else key


def _when(table: TomlTable, before: dict[str, Parameter]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for key, given in table.items():
        name = NAMED.get(key, key) if key not in before else key
        if name not in before:
            raise InputError(f"when: {unknown('key', key, (_as_written(one) for one in before))} (of those above)")
        values = before[name].values
        wanted = given if isinstance(given, list) else [given]
        for value in wanted:
            if value not in values:
                raise InputError(f"when: {key} is never {shown(value)}; it is one of {shown(list(values))}")
        found[name] = frozenset(values.index(value) for value in wanted)
    return found


def _as_written(key: str) -> str:
    return next((short for short, long in NAMED.items() if long == key), key)


def _check_values(
    written: str,
    parameter: Parameter,
    parameters: dict[str, Parameter],
    workloads: list[Workload],
    problems: Problems,
    kind: Kind,
) -> None:
    """Each value is tried as a setting of its own, beside those that it depends on, by whoever reads settings."""
    beside = {key: parameters[key].values[min(places)] for key, places in parameter.when.items()}
    for value in parameter.values:
        aside = problems.aside()
        table = nested({**beside, parameter.key: value})
        settings = read_settings({"candidate": table}, aside, kind)
        variants(workloads, settings, aside)
        for _, what in aside.found():
            problems.add((*SPACE, written), what)
        if aside.found():
            return


def _requirements(texts: Iterable[str], parameters: list[Parameter], problems: Problems) -> list[Requirement]:
    found: list[Requirement] = []
    sized = [one.key for one in parameters if one.sizes is not None]
    for text in texts:
        path = (*TABLE, "require")
        parts = re.fullmatch(rf"\s*([\w.-]+)\s*({'|'.join(OPERATORS)})\s*(\S+)\s*", text)
        if parts is None:
            problems.add(path, f'{shown(text)} given; expected such as "dirty_background_ratio < dirty_ratio"')
            continue
        left, how, right = parts.groups()
        if left not in sized:
            problems.add(path, f"{left}: {unknown('range of [tune.space]', left, sized)}")
        elif right in sized:
            found.append(Requirement(left, how, right))
        else:
            try:
                found.append(Requirement(left, how, _number(right)))
            except ValueError:
                problems.add(path, f"{right}: expected a number, a size, a duration or a range: {', '.join(sized)}")
    return found


def _number(text: str) -> float:
    for read in (float, parse_bytes, parse_duration_ns):
        try:
            return float(read(text))
        except ValueError:
            continue
    raise ValueError(text)
