"""What nobody foresaw in a trial's process: the trial failed, the message says what it was, and the run goes on."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import iolab.studies.run
import pytest
from fake_machine import SilentDisplay, experiment
from iolab.base import child_process
from iolab.domain.trial import Trial
from iolab.files.store import read
from iolab.machines import fork_server, module_process, worker
from iolab.machines.host.local_process import LocalProcess
from iolab.machines.system import command
from iolab.machines.worker_process import WorkerProcess
from iolab.studies.run import plan
from support.growth import assert_linear

pytestmark = pytest.mark.usefixtures("state_dir")

BROKEN = """\
import os, sys
from iolab.machines.host import host
from iolab.machines import worker

def execute(trial, **_):
    {what}

host.execute = execute
{main}
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Workers whose `host.execute` does what it is given: the worker's own main, with that one function replaced."""

    def use(what: str) -> None:
        source = Path(worker.__file__).read_text()
        main = source[source.index('if __name__ == "__main__":') :].replace("main()", "worker.main()")
        main = main.replace("serve(", "worker.serve(")
        imports = "import time, traceback\n"
        (tmp_path / "broken_worker.py").write_text(imports + BROKEN.format(what=what, main=main))
        popen = subprocess.Popen

        def instead(command: list[str], **options: object) -> subprocess.Popen[bytes]:
            if "iolab.machines.worker" in command:
                given = command[command.index("iolab.machines.worker") + 1 :]
                command = [sys.executable, str(tmp_path / "broken_worker.py"), *given]
            return popen(command, **options)  # type: ignore[call-overload, no-any-return]

        monkeypatch.setattr(subprocess, "Popen", instead)
        monkeypatch.setattr(fork_server, "module_process", module_process)
        monkeypatch.setattr(module_process, "_may_fork", lambda: False)

    return use


def first_trial() -> Trial:
    return plan.trials(experiment(), 1, seed=7)[0]


def test_an_unforeseen_exception_fails_the_trial_with_its_message(tmp_path: Path, broken: object) -> None:
    broken('raise KeyError("queue_depth")')  # type: ignore[operator]
    with LocalProcess() as executor:
        iolab.studies.run.run(experiment(), tmp_path / "run", executor=executor, progress=SilentDisplay(), rounds=1)
    data = read(tmp_path / "run")
    assert set(data.trials["status"]) == {"failed"}
    (first, *_) = data.remarks().filter(what="fault")["text"]
    assert "a defect in iolab: KeyError: 'queue_depth' (broken_worker.py:" in first
    assert first.startswith("trial 0, ")


def test_a_panic_that_is_no_exception_fails_the_trial_too(broken: object) -> None:
    broken("class PanicException(BaseException): ...\n    raise PanicException('index out of bounds')")  # type: ignore[operator]
    child = WorkerProcess()
    record = child.run(first_trial(), lambda progress: None, lambda: False)
    child.end()
    assert record.status == "failed"
    assert "a defect in iolab: PanicException: index out of bounds" in record.faults[0].what


def test_a_worker_ends_after_an_exception_outside_of_trials_with_its_message(broken: object) -> None:
    """It still has a thread that reads standard input, which the interpreter's own exit would abort on."""
    broken("worker._send = None; return 3")  # type: ignore[operator]
    child = WorkerProcess()
    record = child.run(first_trial(), lambda progress: None, lambda: False)
    child.end()
    assert "ended with status 1 and no record" in record.faults[0].what
    assert "TypeError" in record.faults[0].what


def test_the_last_words_of_a_process_that_says_much_are_kept(broken: object) -> None:
    broken("sys.stderr.write('x' * 50_000_000 + '\\nthe end'); sys.stderr.flush(); os.abort()")  # type: ignore[operator]
    child = WorkerProcess()
    record = child.run(first_trial(), lambda progress: None, lambda: False)
    child.end()
    assert "SIGABRT" in record.faults[0].what and record.faults[0].what.endswith("the end")
    assert len(record.faults[0].what) < 10_000


def test_an_answer_of_many_megabytes_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As records of hundreds of jobs over an hour are: looking through all of it again with each part took minutes."""

    def answered(size: int) -> None:
        program = f"import sys; sys.stdin.readline(); print('{{}}'); print('\"' + 'x' * {size} + '\"'); print('[1]')"
        monkeypatch.setattr(child_process, "python", lambda _: [sys.executable, "-c", program])
        child = WorkerProcess()
        child._send("begin")
        messages = [one for one in child._messages(lambda: False) if one is not None]
        child.end()
        first, large, last = map(str, messages)
        assert (first, len(large), last) == ("{}", size, "[1]")

    assert_linear(lambda size: partial(answered, size), 60_000_000)


def test_a_worker_that_prepares_for_long_ends_soon_after_its_parent(tmp_path: Path) -> None:
    program = (
        "import time; from iolab.machines import worker; from iolab.machines.host import host;"
        "worker.ORPHAN_PATIENCE_S = 0.5;"
        "host.execute = lambda *_, **__: time.sleep(60); worker.main()"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.write(first_trial().model_dump_json().encode() + b"\n")
    child.stdin.flush()
    time.sleep(1.0)
    started = time.monotonic()
    child.stdin.close()
    try:
        assert child.wait(40) == 1
    finally:
        child.kill()
    assert time.monotonic() - started < 40


def test_a_server_that_is_killed_after_it_was_found_alive_has_a_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_alive = []

    def is_alive(server: fork_server.ForkServer) -> bool:
        if not found_alive:
            found_alive.append(server)
            server._process.kill()
            server._process.wait()
            return True
        return server._process.poll() is None

    with LocalProcess() as executor:
        executor._forker()
        monkeypatch.setattr(fork_server.ForkServer, "is_alive", property(is_alive))
        record = executor.run(first_trial(), lambda progress: None, lambda: False)
    assert found_alive
    assert record.status == "ok"


def test_a_server_that_is_killed_before_it_answers_has_a_successor() -> None:
    """It is asked for the next trial's worker while the record of the last one is stored."""
    with LocalProcess() as executor:
        server = executor._forker()._process.pid
        executor.run(first_trial(), lambda progress: os.kill(server, signal.SIGSTOP), lambda: False)
        os.kill(server, signal.SIGKILL)
        record = executor.run(first_trial(), lambda progress: None, lambda: False)
        assert record.status == "ok"
        assert executor._forker()._process.pid != server


def test_a_child_whose_parent_is_gone_before_it_asks_executes_nothing() -> None:
    prepare = command.dying_with_parent()
    if (child := os.fork()) == 0:
        prepare()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    if (child := os.fork()) == 0:
        # Its own child has another parent than the one that `prepare` was made by.
        if (grandchild := os.fork()) == 0:
            prepare()
            os._exit(0)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
