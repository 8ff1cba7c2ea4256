"""What of an experiment is different when its machine is a guest: its table [guest], and the machine by setting."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iolab.base.option import Bytes, Duration, Options, option
from iolab.base.plain_text import counted, listed
from iolab.base.problem import Problems
from iolab.base.quantity import format_bytes
from iolab.base.toml import TomlTable
from iolab.domain.control import CONTROLS
from iolab.domain.experiment import CompiledWorkload
from iolab.domain.probe import Probes
from iolab.domain.probe.instructions import NAME as INSTRUCTIONS
from iolab.domain.probe.instructions import ONLY_ON_GUESTS
from iolab.domain.trial import (
    GuestMachine,
    Phase,
    ScratchTarget,
    Target,
    TimedCommandPhase,
    WeightedLoadPhase,
    drive_properties,
)
from iolab.domain.trial.control_group import KEYS_EVERYWHERE
from iolab.domain.trial.drive_properties import Parameter
from iolab.domain.trial.guest import (
    MEMORY_BYTES_MAX,
    MEMORY_BYTES_MIN,
    PREFIX,
    Accelerator,
    DriveKind,
    is_commit,
    is_image,
)
from iolab.files.experiment.setting import Setting
from iolab.files.experiment.workloads import Workload

_MODULE = re.compile(r"[\w-]{1,64}", re.ASCII)
_VALUE = re.compile(r"[^\s\"'\\]{1,200}")
DRIVE_BYTES_MAX = 2**43
"""Half of the largest file that ext4 keeps; an image is one."""
COMMAND_LINE_MAX = 1500
"""The kernel takes 2,048 characters; some are iolab's own."""


class GuestOptions(Options):
    """The emulated machine of `machine = "guest:KERNEL"`, [guest]; a setting changes it by `kernel` and `machine`."""

    modules: str | None = option(
        None, "Directory of the kernel's modules, for an image given by its path.", default_is="none"
    )
    config: str | None = option(
        None,
        "Configuration of a tree's kernels: `plain`, small and as distributions configure it; or a file: a kernel's "
        "whole `.config`, or lines that change `plain`.",
        default_is="the file iolab-guest.config at the tree's top, else plain",
    )
    debug: str | None = option(
        None,
        "The kernel's file with debug information (vmlinux), or a directory with it and its modules' files, for the "
        "probe's option `inlined`.",
        default_is="the one of the tree's build, if its configuration has debug information",
    )
    cpus: int = option(1, "Virtual CPUs. With several, they run in turns, one at a time.", ge=1, le=64)
    accelerator: Accelerator = option(
        "tcg",
        "What executes its instructions. tcg: QEMU, which counts them, in a time of the machine's own; kvm: this "
        "machine's processor, in its time, and nothing is counted.",
    )
    memory: Bytes = option(
        2**30, "Memory; null_blk keeps what is written in it.", unit="bytes", ge=MEMORY_BYTES_MIN, le=MEMORY_BYTES_MAX
    )
    command_line: str = option("", "Further words of the kernel's command line.", max_length=COMMAND_LINE_MAX)
    drive: DriveKind = option("null_blk", "What the target's devices are.")
    drive_parameters: dict[str, Parameter] = option(
        {},
        "For null_blk, its attributes in configfs, such as irqmode; for scsi_debug, the module's parameters; else "
        "properties of QEMU's device. Names and types are checked.",
    )
    module_parameters: dict[str, dict[str, Parameter]] = option(
        {}, "Parameters of modules, by name; the modules are loaded even if no drive needs them."
    )
    virtual_time_limit: Duration = option(
        120 * 10**9, "Time of its own that a trial may take; an instruction takes a nanosecond.", unit="ns", ge=10**9
    )
    time_limit: Duration = option(
        600 * 10**9,
        "Wall time that a trial may take once its kernel is there: symbols, images, the machine, the record.",
        unit="ns",
        ge=10**9,
    )


def machines_under(
    machine: str, table: TomlTable, settings: Sequence[Setting], problems: Problems
) -> dict[str, GuestMachine]:
    """The machine under each setting; those whose changes lead nowhere are noted and left out."""
    found: dict[str, GuestMachine] = {}
    if problems.validated(GuestOptions, table, ("guest",), "a guest machine") is None:
        return found
    for setting in settings:
        changes = dict(setting.controls.get("machine", {}))
        path = ("settings", setting.written_as, "machine")
        options = problems.validated(GuestOptions, _merged(table, changes), path, "a guest machine")
        if options is None:
            continue
        kernel = setting.controls.get("kernel", machine.removeprefix(PREFIX))
        of_drive = _drive_parameters(options, changes, path, problems)
        if of_drive is not None and _checked_modules(options, changes, path, problems):
            found[setting.name] = _machine(kernel, options, of_drive)
    return found


def check(
    target: Target | None,
    settings: Sequence[Setting],
    workloads: Sequence[Workload],
    under: Mapping[tuple[str, str], CompiledWorkload],
    problems: Problems,
) -> None:
    """Notes what a guest machine does not have yet."""
    if isinstance(target, ScratchTarget):
        for side in ("log", "realtime"):
            if getattr(target, side) is not None:
                problems.add(
                    ("target", f"{side}_size"), "a guest machine's filesystems have no devices beside their own"
                )
    elif target is not None:
        problems.add(("target", "kind"), 'files lie on the guest machine\'s own drives; expected kind = "scratch"')
    for setting in settings:
        for name, value in setting.controls.items():
            if CONTROLS[name].on_guest(value) is None:
                problems.add(("settings", setting.written_as, name), "not to be had on a guest machine")
        if not isinstance(target, ScratchTarget):
            continue
        for workload in workloads:
            compiled = under.get((workload.name, setting.name), workload.compiled)
            for phase in compiled.phases(seed=0, devices=target.devices):
                if phase.beside is not None:
                    what = "workloads that run together are not to be had on a guest machine; a mix of jobs is"
                    problems.add(("workloads", workload.written_as), what)
                    break
                if not runs(phase):
                    what = f"{phase.kind} phases are not to be had on a guest machine"
                    remedy = "loads, metadata loads, sorts and commands are"
                    problems.add(("workloads", workload.written_as), f"{what}; {remedy}")
                elif isinstance(phase, TimedCommandPhase):
                    _check_command(phase, target, setting, workload, problems)
                elif isinstance(phase, WeightedLoadPhase) and (lacking := _lacking(phase)):
                    problems.add(("workloads", workload.written_as, "groups"), lacking)
                elif isinstance(phase, WeightedLoadPhase) and phase.controller == "cfq":
                    what = "a guest machine shares by weights under bfq or by io.cost, not by cfq"
                    key = "groups" if phase.groups else "controller"
                    problems.add(("workloads", workload.written_as, key), what)


def _lacking(phase: WeightedLoadPhase) -> str | None:
    """What a guest machine does not do of a phase's groups."""
    if phase.needs_version_2 and (phase.ends_with is not None or not phase.groups):
        what = "a guest machine's groups of version 2 (io_latency, io.cost) are processes that each run to their end"
        return f"{what}; leave {'ends_with' if phase.groups else 'iostest'} out, or run it on a host"
    for group in phase.groups:
        beyond = sorted({"inside"} if group.inside else set(group.given) - KEYS_EVERYWHERE)
        if beyond:
            what = f"a guest machine's groups have {listed(sorted(KEYS_EVERYWHERE))} alone"
            return f"{what}, and {group.name} has {beyond[0]}; run it on a host"
    return None


def _check_command(
    phase: TimedCommandPhase, target: ScratchTarget, setting: Setting, workload: Workload, problems: Problems
) -> None:
    if phase.directory is not None:
        what = "a guest machine has no directory of this host; leave it out: the command runs on the guest's drive"
        problems.add(("workloads", workload.written_as, "directory"), what)
    if target.filesystem is None and setting.controls.get("filesystem") is None:
        problems.add(("target",), 'a command runs in a directory; give the target a filesystem, such as "ext4"')


_OF_KERNELS: dict[str, tuple[Callable[[str], bool], str]] = {
    "config": (is_commit, "a tree's kernels, guest:TREE@COMMIT, alone have a configuration of yours"),
    "modules": (is_image, "only a kernel's image, guest:/PATH, has its modules elsewhere"),
}
"""Keys of [guest] that some kinds of kernels read, and what is wrong without such a kernel."""


def check_kernels(guests: Mapping[str, GuestMachine], problems: Problems) -> None:
    """Notes keys that no kernel of the experiment reads."""
    for key, (reads, what) in _OF_KERNELS.items():
        given = [guest for guest in guests.values() if getattr(guest, key) is not None]
        if given and not any(reads(guest.kernel) for guest in given):
            problems.add(("guest", key), what)


INTERRUPTS_PER_CPU = 180
"""That are left for drives of QEMU's, each of which takes one, and one per CPU (97 drives of nvme came up with one CPU,
134 with two)."""


def check_drives(targets: Mapping[str, ScratchTarget], guests: Mapping[str, GuestMachine], problems: Problems) -> None:
    """Notes drives that are too large, and more of them than the machine's CPUs have interrupts for; the kernel's own
    drives need none. Targets and machines are those under each setting."""
    for setting, machine in guests.items():
        target = targets.get(setting)
        if target is None:
            continue
        if target.drive_bytes > DRIVE_BYTES_MAX:
            what = f"a guest machine's drive has at most {format_bytes(DRIVE_BYTES_MAX)}"
            problems.add(("target", "size"), what)
        most = INTERRUPTS_PER_CPU * machine.cpus // (machine.cpus + 1)
        if machine.drive in ("virtio-blk", "nvme") and target.drives > most:
            what = (
                f"a guest machine with {machine.cpus} virtual CPUs has interrupts for {counted(most, 'drive')}; "
                "null_blk and scsi_debug need none"
            )
            problems.add(("target", "devices"), what)
            break


def runs(phase: Phase) -> bool:
    """Whether a guest's agent has a runner for the phase."""
    return phase.kind in ("load", "weighted_load", "metadata", "sort", "command")


def counting(
    probes: Mapping[str, Probes], table: TomlTable, machine: TomlTable, settings: Sequence[Setting]
) -> dict[str, Probes]:
    """The probes with the counting of instructions, unless [probes], the setting or its machine switches it off.

    Args:
        table: [probes], machine: [guest].
    """
    off = {setting.name for setting in settings if setting.probes is not None and INSTRUCTIONS not in setting.probes}
    off |= (
        {setting.name for setting in settings if setting.probes is None} if table.get(INSTRUCTIONS) is False else set()
    )
    for setting in settings:
        if _merged(machine, setting.controls.get("machine", {})).get("accelerator") == "kvm":
            off.add(setting.name)
    return {name: on if name in off else {INSTRUCTIONS: {}, **on} for name, on in probes.items()}


def check_probes(probes: Mapping[str, Probes], settings: Sequence[Setting], problems: Problems) -> None:
    """Notes the probes that read another machine than a guest."""
    for setting in settings:
        for name in probes[setting.name]:
            if name != INSTRUCTIONS:
                path = ("probes",) if setting.probes is None else ("settings", setting.written_as, "probes")
                problems.add((*path, name), f"a guest machine has the probe {INSTRUCTIONS} only")


def check_none(probes: Mapping[str, Probes], settings: Sequence[Setting], problems: Problems) -> None:
    """Notes the probe of guest machines on any other."""
    for setting in settings:
        if INSTRUCTIONS in probes[setting.name]:
            path = ("probes",) if setting.probes is None else ("settings", setting.written_as, "probes")
            problems.add((*path, INSTRUCTIONS), ONLY_ON_GUESTS)


def _merged(table: TomlTable, changes: Mapping[str, Any]) -> TomlTable:
    """The table with keys by their dotted paths changed."""
    merged: TomlTable = {key: dict(value) if isinstance(value, dict) else value for key, value in table.items()}
    for path, value in changes.items():
        at = merged
        *tables, last = path.split(".")
        for name in tables:
            at[name] = dict(at.get(name, {}))
            at = at[name]
        at[last] = value
    return merged


def _drive_parameters(
    options: GuestOptions, changes: Mapping[str, Any], of_setting: Sequence[str], problems: Problems
) -> dict[str, str] | None:
    """As the drive takes them; None with a problem noted for each that it does not."""
    found = {}
    for name, value in options.drive_parameters.items():
        try:
            found[name] = drive_properties.read(options.drive, name, value)
        except ValueError as error:
            _note(("drive_parameters", name), str(error), changes, of_setting, problems)
    return found if len(found) == len(options.drive_parameters) else None


def _checked_modules(
    options: GuestOptions, changes: Mapping[str, Any], of_setting: Sequence[str], problems: Problems
) -> bool:
    """Whether the modules' parameters are words of their own on the kernel's command line; notes those that are not."""
    wrong = [
        ("module_parameters", module, name)
        for module, given in options.module_parameters.items()
        for name, value in given.items()
        if not (_MODULE.fullmatch(module) and _MODULE.fullmatch(name) and _VALUE.fullmatch(str(value)))
    ]
    for key in wrong:
        what = "expected a module, its parameter and a value, each a word without quotes and spaces"
        _note(key, what, changes, of_setting, problems)
    return not wrong


def _note(
    key: Sequence[str], what: str, changes: Mapping[str, Any], of_setting: Sequence[str], problems: Problems
) -> None:
    """The place in the file: the setting, if that changes the key or the drive that decides about it."""
    dotted = ".".join(key)
    if "drive" in changes or any(f"{dotted}.".startswith(f"{name}.") for name in changes):
        problems.add(of_setting, f"{dotted}: {what}")
    else:
        problems.add(("guest", *key), what)


def _machine(kernel: str, options: GuestOptions, drive_parameters: dict[str, str]) -> GuestMachine:
    return GuestMachine(
        kernel=kernel,
        modules=options.modules,
        debug=options.debug,
        config=options.config,
        cpus=options.cpus,
        memory_bytes=options.memory,
        command_line=options.command_line,
        drive=options.drive,
        drive_parameters=drive_parameters,
        module_parameters={name: _texts(given) for name, given in options.module_parameters.items()},
        accelerator=options.accelerator,
        time_limit_ns=options.time_limit,
        virtual_time_limit_ns=options.virtual_time_limit,
    )


def _texts(given: Mapping[str, Parameter]) -> dict[str, str]:
    return {name: str(int(value)) if isinstance(value, bool) else str(value) for name, value in given.items()}
