"""Asks a claim where it can be asked: each of its asks by the counts of a guest machine, an experiment or a model.

BASE..TIP/PATH       runs of paths of `iolab cost`, which claims on the same two kernels share
EXPERIMENT-DIGEST    the run of an experiment, which asks of it share
CLAIM/model          the run of a file's own experiment on the model
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

from iolab.base.errors import InputError, InterruptedRun, IolabError, unknown
from iolab.base.version import VERSION
from iolab.domain.claim.finding import (
    Answer,
    Direction,
    Finding,
    answer_of_change,
    answer_of_comparison,
    answer_of_path,
)
from iolab.domain.comparison import Comparison
from iolab.domain.cost.measure import MEASURES, Change, paired_change
from iolab.domain.cost.path_cost import SAME_WITHIN
from iolab.domain.executor import Display, Executor
from iolab.domain.machine import Host, Model
from iolab.domain.metric import ALL
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.symbols import source_name
from iolab.files.experiment import load as load_experiment
from iolab.files.store import RunData, read
from iolab.studies import run as runs
from iolab.studies.claims.library import Claim, statement_of
from iolab.studies.cost import kernels, suite
from iolab.studies.cost.kernels import BASE
from iolab.studies.cost.paths import chosen
from iolab.studies.reproduction import compare_kept, objects, reproduce
from iolab.studies.reproduction.options import AskOptions
from iolab.studies.reproduction.part import StatementPart
from iolab.studies.reproduction.run_values import RunValues
from iolab.studies.reproduction.statements import Statement, judged

ROUNDS = 3
_DIGITS = 8
"""Of the digest of an experiment's text, so that a run is of this text alone."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+-]+")


class Asker:
    """Asks claims one after the other; their runs are below `out`, and what is there is continued.

    Args:
        rounds: boots of each kernel on a path; None: `ROUNDS`, and the experiments' own.
    """

    def __init__(self, out: Path, executor: Executor, progress: Display, rounds: int | None = None) -> None:
        self._out = out
        self._executor = executor
        self._progress = progress
        self._rounds = rounds

    def ask(self, claim: Claim, places: Collection[str]) -> list[Finding]:
        """The answers of the claim's asks at these places. What can't be measured is an answer with the reason.

        Raises:
            InputError: the claim has no ask there, or an ask does not fit its experiment.
            InterruptedRun: after Ctrl-C; the same command goes on.
        """
        asks = {name: ask for name, ask in claim.published.effects.asks.items() if ask.by in places}
        if not asks:
            reasons = [why for place, why in claim.published.effects.not_asked.items() if place in places]
            said = f": {reasons[0]}" if reasons else ""
            raise InputError(f"{claim.published.name} is not asked by {' or '.join(places)}{said}", where="iolab claim")
        return [self._one(claim, name, ask) for name, ask in asks.items()]

    def _one(self, claim: Claim, name: str, ask: AskOptions) -> Finding:
        effect = claim.published.effects.claimed[ask.effect]
        expected = ask.expect or effect.direction
        self._progress.report_line(f"{claim.published.name}: {name}, by {ask.by}")
        try:
            if ask.statement is not None:
                return self._of_model(claim, name, ask, expected)
            if ask.path is not None:
                return self._of_path(name, ask, expected)
            return self._of_experiment(claim, name, ask, expected)
        except (InputError, InterruptedRun):
            raise
        except IolabError as error:
            return _finding(name, ask, expected, "not measured", ask.path or ask.experiment or "", reason=error.what)

    def _of_path(self, name: str, ask: AskOptions, expected: Direction) -> Finding:
        assert ask.path is not None and ask.base is not None and ask.tip is not None
        measure = ask.measure or "kernel"
        versions = kernels.named(ask.base, ask.tip)
        place = self._out / _UNSAFE.sub("_", f"{ask.base}..{ask.tip}")
        effort = suite.Effort(self._rounds or ROUNDS)
        measured = suite.measure(
            versions, chosen([ask.path]), effort, place, executor=self._executor, progress=self._progress
        )
        path = suite.report(versions, measured, "").paths[0]
        if ask.function is not None and not path.why:
            return _of_function(name, ask, expected, suite.observations(cast(RunData, measured[0].run)))
        what = f"{MEASURES[measure].words} per operation on {ask.path}, {ask.base} and {ask.tip}"
        answer = answer_of_path(path, measure, expected)
        change = path.changes.get(measure)
        if change is None:
            return _finding(name, ask, expected, answer, what, reason=path.why)
        return _changed(name, ask, expected, answer, what, change, path.rounds)

    def _of_experiment(self, claim: Claim, name: str, ask: AskOptions, expected: Direction) -> Finding:
        assert ask.experiment is not None and ask.metric is not None and ask.setting is not None
        file = (claim.file.parent / ask.experiment).resolve()
        experiment = load_experiment(file)
        machine = type(experiment.machine)
        if (machine is Host) != (ask.by == "host") or machine is Model:
            expected_machine = "this machine" if ask.by == "host" else "a guest machine"
            where = f"{claim.file}: asks.{name}.by"
            raise InputError(f"{ask.by} given, and the experiment is not of {expected_machine}", where=where)
        workload = ask.workload or next(iter(experiment.workloads))
        known = (("workload", workload, experiment.workloads), ("setting", ask.setting, experiment.settings))
        for what, given, among in (*known, ("baseline", ask.baseline or "", experiment.settings)):
            if given not in among:
                where = f"{claim.file}: asks.{name}.{what}"
                raise InputError(f"{given}: {unknown(what, given, among)}", where=where)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:_DIGITS]
        run_of = self._out / f"{_UNSAFE.sub('_', file.stem)}-{digest}"
        options = {"executor": self._executor, "progress": self._progress}
        if run_of.exists():
            done = runs.resume(run_of, **options, rounds=self._rounds).path  # type: ignore[arg-type]
        else:
            done = runs.run(experiment, run_of, **options, rounds=self._rounds).path  # type: ignore[arg-type]
        statement = _statement(ask, workload)
        run = read(done)
        # A count repeats to less than a thousandth; an experiment's own margin is for times.
        margin = SAME_WITHIN if ask.by == "count" else None
        found = judged([statement], run, RunValues(run), margin)[0]
        what = f"{ask.metric} of {workload}, {ask.baseline} and {ask.setting}, {Path(ask.experiment).stem}"
        if found.comparison is None or found.absent:
            return _finding(name, ask, expected, "not measured", what, reason=found.absent)
        return _compared(name, ask, expected, answer_of_comparison(found.comparison, expected), what, found.comparison)

    def _of_model(self, claim: Claim, name: str, ask: AskOptions, expected: Direction) -> Finding:
        """As the last `make reproduce` stored it, which is what a run of this iolab comes to; a file of the user's own
        is run."""
        stated = next(one for one in claim.published.statements if one.name == ask.statement)
        found = statement_of(claim.published.name, stated.name) if claim.comes_with_iolab else None
        if found is None:
            place = self._out / _UNSAFE.sub("_", claim.published.name) / "model"
            if place.exists():
                made = compare_kept(claim.published, place)
            else:
                options = {"executor": self._executor, "progress": self._progress}
                made = reproduce(claim.published, place, **options, rounds=self._rounds)  # type: ignore[arg-type]
            found = statement_of(claim.published.name, stated.name, objects(made))
        assert found is not None, "the file's reader refuses a statement that it has not"
        return _of_statement(name, ask, expected, stated, found)


def _of_statement(name: str, ask: AskOptions, expected: Direction, stated: Statement, one: StatementPart) -> Finding:
    """The answer of a claim of the model: by the file's own verdicts, which may be several, or its limit."""
    found = cast(Any, one["found"])
    answer: Answer = "agrees" if one["met"] else "undecided" if found.get("verdict") == "undecided" else "disagrees"
    is_limit = stated.baseline is None
    sides = stated.setting if is_limit else f"{stated.baseline} and {stated.setting}"
    what = f"{stated.metric} of {stated.workload}, {sides}"
    if one["absent"] is not None:
        return _finding(name, ask, expected, "not measured", what, reason=one["absent"])
    # What a parameter was fitted to, or chosen with, is no evidence.
    served = "a parameter of the model was fitted or chosen with this claim in sight" if one["served"] else None
    ends = [None if is_limit else found[key] - 1 for key in ("ratio", "ci_low", "ci_high")]
    values = (found["values"][0], None) if is_limit else (found["baseline"], found["candidate"])
    rounds = len(found["values"]) if is_limit else found["n"]
    finding = _finding(name, ask, expected, answer, what, values=values, shares=ends, rounds=rounds)
    return finding.model_copy(update={"confounded": served or finding.confounded})


def _of_function(
    name: str, ask: AskOptions, expected: Direction, observed: Mapping[str, Mapping[int, InstructionsObservation]]
) -> Finding:
    """The answer of a function's calls per operation; one that a kernel does not have is called never."""
    tip = next(setting for setting in observed if setting != BASE)
    common = sorted(observed[BASE].keys() & observed[tip].keys())
    base, after = ([_calls(observed[side][number], ask.function or "") for number in common] for side in (BASE, tip))
    change = paired_change(base, after)
    what = f"calls of {ask.function} per operation on {ask.path}, {ask.base} and {ask.tip}"
    if not any(base) and not any(after):
        why = "neither kernel calls it on this path, or both have it inlined"
        return _finding(name, ask, expected, "not measured", what, reason=why)
    return _changed(name, ask, expected, answer_of_change(change, expected), what, change, len(common))


def _calls(found: InstructionsObservation, function: str) -> float:
    of_function = (
        calls for symbol, calls in zip(found["symbols"], found["calls"], strict=True) if source_name(symbol) == function
    )
    return sum(of_function) / found["operations"]


def _changed(
    name: str, ask: AskOptions, expected: Direction, answer: Answer, what: str, change: Change, rounds: int
) -> Finding:
    ends = (change.low, change.high) if change.half_width is not None else (None, None)
    return _finding(
        *(name, ask, expected, answer, what),
        values=(change.base, change.tip),
        shares=(change.share, *(None if end is None or not change.base else end / change.base for end in ends)),
        rounds=rounds,
        reason=None if answer != "undecided" else "the interval is too wide, or no function is named that changed",
    )


def _statement(ask: AskOptions, workload: str) -> Statement:
    return Statement(
        name="ask",
        text="",
        who="",
        workload=workload,
        metric=ask.metric or "",
        per=None,
        job=ALL,
        baseline=ask.baseline,
        setting=ask.setting or "",
        verdicts=[],
        above=None,
        below=None,
    )


def _compared(
    name: str, ask: AskOptions, expected: Direction, answer: Answer, what: str, comparison: Comparison
) -> Finding:
    judgement = comparison.judgement
    ends = (judgement.ratio, judgement.ci_low, judgement.ci_high)
    return _finding(
        *(name, ask, expected, answer, what),
        values=(judgement.baseline, judgement.candidate),
        shares=tuple(None if end is None else end - 1 for end in ends),
        rounds=judgement.n,
        reason=judgement.reason or judgement.why,
    )


def _finding(
    name: str,
    ask: AskOptions,
    expected: Direction,
    answer: Answer,
    what: str,
    *,
    values: tuple[float | None, float | None] = (None, None),
    shares: Sequence[float | None] = (None, None, None),
    rounds: int = 0,
    reason: str | None = None,
) -> Finding:
    return Finding(
        ask=name,
        by=ask.by,
        effect=ask.effect,
        expected=expected,
        answer=answer,
        what=what,
        baseline=values[0],
        candidate=values[1],
        share=shares[0],
        low=shares[1],
        high=shares[2],
        rounds=rounds,
        confounded=ask.confounded,
        reason=reason,
        date=date.today().isoformat(),
        iolab=VERSION,
    )
