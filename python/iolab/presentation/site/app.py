"""The pages' interface over HTTP: read only, described in /api/openapi.json, and the files that browsers load."""

from __future__ import annotations

import ipaddress
import re
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.middleware.gzip import GZipMiddleware

from iolab.base.errors import InputError, IolabError
from iolab.base.version import VERSION
from iolab.files.collection.collection import Collection
from iolab.presentation.site import benchmark, comparison, overview, page_types
from iolab.presentation.site import run as run_page
from iolab.presentation.site.assets import NO_FRAMES, POLICY, TYPES, static_files

HEADERS = {
    "Content-Security-Policy": POLICY + NO_FRAMES,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
IPV6 = 6
_HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
ANSWERS_KEPT_BYTES = 32 << 20
RunId = Annotated[str, InPath(pattern="^[0-9a-f]{12}$", description="a run's id")]
BenchmarkId = Annotated[str, InPath(pattern="^[0-9a-f]{10}$", description="a benchmark's id")]
HardwareId = Annotated[str, InPath(pattern="^[0-9a-f]{8}$", description="the id of the hardware it ran on")]
PROBLEMS: dict[int | str, dict[str, type[page_types.Problem]]] = {404: {"model": page_types.Problem}}


class Answers:
    """Answers as bytes, kept until a run changes: a page asks for the same again and again."""

    def __init__(self, runs: Collection) -> None:
        self._runs = runs
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._of = -1
        self._bytes = 0

    def of(self, name: str, make: Callable[[], BaseModel]) -> Response:
        """The answer called `name`, made if it is not there."""
        with self._lock:
            if self._of != self._runs.changed:
                self._kept.clear()
                self._of, self._bytes = self._runs.changed, 0
            content = self._kept.get(name)
            of = self._of
        if content is None:
            content = make().model_dump_json().encode()
            with self._lock:
                if of == self._of:
                    self._bytes += len(content)
                    self._kept[name] = content
                while self._bytes > ANSWERS_KEPT_BYTES:
                    self._bytes -= len(self._kept.popitem(last=False)[1])
        return Response(content, media_type="application/json")

    def forget(self) -> None:
        """After a history was looked at, of runs that did not change."""
        with self._lock:
            self._of = -1


def make_app(runs: Collection, host: str) -> tuple[FastAPI, Answers]:
    """The application over a collection that other code keeps up to date. `host`: where it is served; requests that
    name another are refused, so that no page of elsewhere reads runs by pointing its own name here."""
    app = FastAPI(
        title="iolab: runs",
        description="Read only. The files of `iolab site` have the same names and contents, without live and compare.",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    answers = Answers(runs)
    _add_static(app)
    _add_collection(app, runs, answers)
    _add_benchmarks(app, runs, answers)
    _add_runs(app, runs, answers)

    @app.exception_handler(IolabError)
    async def _refuse(_: Request, error: IolabError) -> JSONResponse:
        return JSONResponse({"what": str(error)}, status_code=404 if isinstance(error, InputError) else 503)

    @app.exception_handler(OSError)
    async def _refused_by_the_machine(_: Request, error: OSError) -> JSONResponse:
        return JSONResponse({"what": f"the machine can't answer now: {error.strerror}"}, status_code=503)

    allowed = _names_of(host)

    @app.middleware("http")
    async def _guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        if not _asks_here(request.headers.getlist("host"), allowed):
            response: Response = JSONResponse({"what": "the Host is not the name of this server"}, status_code=421)
        else:
            response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    app.add_middleware(GZipMiddleware, minimum_size=2000, compresslevel=2)
    return app, answers


def _names_of(host: str) -> set[str] | None:
    """The names by which a server on the loopback address is asked for, as a Host has them; None: any, of one that
    others reach."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return {*LOOPBACK, host.lower()} if host.lower() == "localhost" else None
    named = f"[{host}]" if address.version == IPV6 else host
    return {*LOOPBACK, named.lower()} if address.is_loopback else None


def _asks_here(hosts: list[str], allowed: set[str] | None) -> bool:
    """Whether there is one Host, of the form NAME or NAME:PORT and nothing else, and the name is allowed. The port may
    be another's: a tunnel to here has its own."""
    if len(hosts) != 1 or not (found := _HOST.fullmatch(hosts[0])):
        return False
    return allowed is None or found[1].lower() in allowed


def _add_static(app: FastAPI) -> None:
    found = static_files()

    @app.get("/", include_in_schema=False)
    def index() -> Response:
        return Response(found["index.html"], media_type="text/html")

    @app.get("/{name}", include_in_schema=False)
    def asset(name: str) -> Response:
        if name not in found:
            raise InputError("there is no such page", where=name)
        return Response(found[name], media_type=TYPES[name.rpartition(".")[2]])


def _add_collection(app: FastAPI, runs: Collection, answers: Answers) -> None:
    @app.get("/api/meta.json", response_model=page_types.Meta)
    def meta() -> page_types.Meta:
        """What all pages need."""
        return overview.meta(runs, live=True)

    @app.get("/api/overview.json", response_model=page_types.Overview)
    def first_page() -> Response:
        """Regressions first, then benchmarks, then the newest runs."""
        return answers.of("overview", lambda: overview.overview(runs))

    @app.get("/api/runs/{chunk}.json", response_model=page_types.RunList, responses=PROBLEMS)
    def run_list(chunk: Annotated[int, InPath(ge=0, le=10_000)]) -> Response:
        """A part of the list of all runs, the newest first."""
        if chunk >= overview.chunks(runs):
            raise InputError("there are fewer runs", where=str(chunk))
        return answers.of(f"runs {chunk}", lambda: overview.run_list(runs, chunk))

    @app.get("/api/live.json", response_model=page_types.Live)
    def live() -> page_types.Live:
        """The runs in progress, with the trials that they have finished."""
        return overview.live(runs)


def _add_benchmarks(app: FastAPI, runs: Collection, answers: Answers) -> None:
    @app.get("/api/benchmarks/{id}-{hardware}.json", response_model=page_types.BenchmarkPage, responses=PROBLEMS)
    def benchmark_page(id: BenchmarkId, hardware: HardwareId) -> Response:
        """A benchmark on one hardware: its runs, and the metrics that it compares."""
        found = benchmark.find(runs, id, hardware)
        return answers.of(f"benchmark {id} {hardware}", lambda: benchmark.page(runs, found))

    @app.get("/api/benchmarks/{id}-{hardware}/matrix.json", response_model=page_types.MatrixPage, responses=PROBLEMS)
    def matrix(id: BenchmarkId, hardware: HardwareId) -> Response:
        """Kernels x settings, a matrix per workload and metric."""
        found = benchmark.find(runs, id, hardware)
        return answers.of(f"matrix {id} {hardware}", lambda: benchmark.matrix_page(runs, found))

    @app.get("/api/benchmarks/{id}-{hardware}/{metric}.json", response_model=page_types.MetricPage, responses=PROBLEMS)
    def metric(id: BenchmarkId, hardware: HardwareId, metric: HardwareId) -> Response:
        """One metric over the runs, a line per workload and setting."""
        found = benchmark.find(runs, id, hardware)
        return answers.of(f"metric {id} {hardware} {metric}", lambda: benchmark.metric_page(runs, found, metric))

    @app.get("/api/compare/{baseline}/{candidate}.json", response_model=page_types.ComparisonPage, responses=PROBLEMS)
    def compare(
        baseline: RunId,
        candidate: RunId,
        unlike: Annotated[bool, Query(description="compare although the hardware is not alike")] = False,
    ) -> Response:
        """Two runs side by side; without `judged` if the hardware differs, unless it is asked for."""
        ours, theirs = runs.entry(baseline), runs.entry(candidate)
        name = f"compare {baseline} {candidate} {unlike}"
        return answers.of(name, lambda: comparison.page(runs, ours, theirs, although_unlike=unlike))


def _add_runs(app: FastAPI, runs: Collection, answers: Answers) -> None:
    @app.get("/api/run/{id}.json", response_model=page_types.RunPage, responses=PROBLEMS)
    def run(id: RunId) -> Response:
        """A run: verdicts, numbers by round, sweeps, facts."""
        entry = runs.entry(id)
        return answers.of(f"run {id}", lambda: run_page.page(runs, entry))

    @app.get("/api/run/{id}/experiment.toml", responses=PROBLEMS)
    def experiment(id: RunId) -> Response:
        """The exact text of the experiment."""
        return Response(run_page.experiment(runs, runs.entry(id)), media_type="text/plain")

    @app.get("/api/run/{id}/machine.json", responses=PROBLEMS)
    def machine(id: RunId) -> Response:
        """The machine, as it was when the run began."""
        return Response(run_page.machine(runs, runs.entry(id)), media_type="application/json")

    @app.get("/api/run/{id}/trials/{trial}.json", responses=PROBLEMS)
    def record(id: RunId, trial: Annotated[int, InPath(ge=0, le=10**9)]) -> Response:
        """The record of one trial, without histograms and time series."""
        return Response(run_page.record(runs, runs.entry(id), trial), media_type="application/json")
