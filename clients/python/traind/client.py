"""The calls of one server."""
from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tempfile
import urllib.parse
import uuid
import warnings as python_warnings
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Union

from .errors import TraindError, error_of
from .job import Job, job_of
from .job_array import JobArray, combinations, sharing_tables, spec_of
from .progress import time_text
from .spec import budget_of, resolved
from .tables import (Columns, SharedTable, TableFolder, as_frame, cell_text, columns_of, is_frame, is_table, relabelled,
                     remove_files)
from .transport import Transport, is_local


_PART_BYTES = 2 << 20
_BATCH = 100  # specs of a call


class TraindWarning(UserWarning):
    """traind's answer to a spec that it has taken."""


class Client:
    """traind at an address. `data_folder` is where tables are written for it to read.

    Threads: any.
    """

    def __init__(self, url: str, data_folder: Optional[str] = None, timeout: float = 30.0, server: Any = None,
                 token: Optional[str] = None, ca: Optional[str] = None):
        self.transport = Transport(url, timeout, token=token, ca=ca)
        self.url = self.transport.url
        self.server = server  # a LocalServer that ends with this client
        self._folder = data_folder or os.environ.get("TRAIND_DATA") or (server.data_folder if server else None)
        if not self._folder and is_local(self.transport.host):
            self._folder = os.path.join(os.getcwd(), ".traind")

    # ---- Jobs

    def submit(self, spec: Any, request_id: Optional[str] = None, index: Any = None) -> Job:
        """Submits a spec: a dict, a YAML text, or the path of a YAML file. The Job is durable when this returns.

        In a dict, a table (a frame, a dict of columns) may stand in place of a file, and paths may be relative to the
        current folder. A repeated call with the same request_id answers the same Job.
        """
        files: List[str] = []
        labels = None
        if isinstance(spec, dict):
            labels = self._labels(spec)
            spec, files = self._resolved(spec)
        else:
            spec = self._text(spec)
        try:
            reply = self.transport.json("POST", "/v1/jobs", spec,
                                        headers={"Idempotency-Key": request_id or uuid.uuid4().hex})
        except TraindError:
            remove_files(files)
            raise
        return Job(self, job_of(reply), reply.get("warnings") or [], files, labels, index)

    def submit_many(self, specs: Iterable[Dict[str, Any]], request_ids: Optional[Iterable[str]] = None,
                    owner: str = "") -> List[Union[Job, TraindError]]:
        """Submits many specs, each a dict as submit() takes it, in batches that are durable when this returns.

        The list has a Job for each spec, or the error by which that one was refused. A repeated call with the same
        request_ids answers the same Jobs.
        """
        specs = list(specs)
        keys = [uuid.uuid4().hex for _ in specs] if request_ids is None else list(request_ids)
        if len(keys) != len(specs):
            raise ValueError(f"{len(specs)} specs have {len(keys)} request_ids")
        answers: List[Union[Job, TraindError]] = []
        for start in range(0, len(specs), _BATCH):
            answers += self._submit_batch(specs[start:start + _BATCH], keys[start:start + _BATCH], owner)
        return answers

    def submit_array(self, spec: Dict[str, Any], fields: Mapping[str, Iterable[Any]], at_once: Optional[int] = None,
                     name: Optional[str] = None, request_id: Optional[str] = None, owner: str = "") -> JobArray:
        """Submits a Job for each combination of the fields' values, as `trainctl submit --array` does.

        fields: {"train.learning_rate": [0.1, 0.01], "data.seed": range(1, 6)} makes 10 Jobs. They have the labels `array`,
        the id of the JobArray, and `array_index`; with a name they are name-0, name-1 and so on. at_once: so many run at a
        time; each further one begins after the end of another. A repeated call with the same request_id, which is the id
        of the array, answers the same Jobs. A table of the spec is written once.
        """
        if at_once is not None and at_once < 1:
            raise ValueError(f"at_once is {at_once}; at least one Job has to run")
        settings = combinations(fields)
        if at_once is not None and (spec.get("after") or any(path.split(".")[0] == "after" for path in fields)):
            raise ValueError("at_once and `after` do not go together: each Job of the array waits for another one, however "
                             "that ends. Wait for the first Job before, or leave at_once out")
        request = request_id or uuid.uuid4().hex
        array = JobArray(request_id or request[:12], settings)
        spec = sharing_tables(spec)
        lanes: List[Optional[str]] = [None] * (at_once or 0)  # the last Job of each
        while len(array) < len(settings):
            first = len(array)
            # A Job can only wait for one that is there.
            most = min(_BATCH, len(lanes) - first % len(lanes)) if lanes else _BATCH
            numbers = range(first, min(first + most, len(settings)))
            specs = [spec_of(spec, settings[i], array.id, i, name, lanes[i % len(lanes)] if lanes else None)
                     for i in numbers]
            array += self._submit_batch(specs, [f"{request}-{i}" for i in numbers], owner)
            for i in numbers if lanes else ():
                if isinstance(array[i], Job):
                    lanes[i % len(lanes)] = array[i].id
        return array

    def _submit_batch(self, specs: List[Dict[str, Any]], keys: List[str], owner: str) -> List[Union[Job, TraindError]]:
        written: List[List[str]] = []
        labels: List[Optional[List[Any]]] = []
        submits = []
        try:
            for spec, key in zip(specs, keys):
                labels.append(self._labels(spec))
                spec, files = self._resolved(spec)
                written.append(files)
                submits.append({"spec": spec, "request_id": key, "owner": owner})
            reply = self.transport.json("POST", "/v1/jobs:batch", {"submits": submits}, repeatable=True)
        except Exception:
            for files in written:
                remove_files(files)
            raise
        answers: List[Union[Job, TraindError]] = []
        for outcome, files, known in zip(reply["outcomes"], written, labels):
            if outcome["status"] == "OK":
                answers.append(Job(self, {"id": outcome["id"]}, outcome.get("warnings") or [], files, known))
            else:
                remove_files(files)
                answers.append(error_of(0, {"error": outcome}))
        return answers

    def train(self, rows: Any, /, target: Any = None, budget: Any = "60s", test: Any = None,
              metric: Optional[str] = None, task: Any = None, progress: bool = True, **spec: Any) -> Any:
        """Trains on a table (a frame, columns, or the path of a file), and answers for the rows of `test`.

        Returns the predictions: a frame with the index of `test` where pandas is installed, else a dict of columns.
        Without `test` it returns the Job, whose predict() answers later. The other arguments are fields of the spec,
        such as model="auto", train={"epochs": 20}, preset="fast", data={"id": "id", "folds": 3}.
        """
        return self._train(3, rows, target, budget, test, metric, task, progress, spec)

    def _train(self, depth: int, rows: Any, target: Any, budget: Any, test: Any, metric: Optional[str], task: Any,
               progress: bool, spec: Dict[str, Any]) -> Any:
        """depth: of the caller, whom warnings name."""
        if target is None and not isinstance(spec.get("data"), dict):
            meant = difflib.get_close_matches("target", spec, 1)
            raise TypeError("train() needs target=, the name of the column to predict"
                            + (f"; there is no {meant[0]}=, did you mean target=?" if meant else ""))
        fields = {"train": rows, "test": test, "target": target, **(spec.pop("data", None) or {})}
        spec["data"] = {name: value for name, value in fields.items() if value is not None}
        spec["budget"] = budget_of(budget)
        wanted = dict(task) if isinstance(task, dict) else {"type": task}
        wanted["metric"] = metric or wanted.get("metric")
        if any(wanted.values()):
            spec["task"] = {name: value for name, value in wanted.items() if value}
        job = self.submit(spec, index=test.index if is_frame(test) else None)
        for warning in job.warnings:
            python_warnings.warn(warning, TraindWarning, stacklevel=depth)
        job.wait(progress)
        return job if test is None else job.predictions()

    def job(self, id: str) -> Job:
        """The Job with this id, or with this name if only one has it."""
        return Job(self, {"id": id}).refresh()

    def plan(self, spec: Any) -> Dict[str, Any]:
        """Tells what submit() would do with a spec: the resolved spec, the plan, what would be cut, the estimated time."""
        files: List[str] = []
        if isinstance(spec, dict):
            spec, files = self._resolved(spec)
        else:
            spec = self._text(spec)
        try:
            return self.transport.json("POST", "/v1/plan", spec, repeatable=True)
        finally:
            remove_files(files)

    def jobs(self, state: Optional[str] = None, labels: Optional[Dict[str, str]] = None, limit: int = 100) -> List[Job]:
        """The newest Jobs."""
        found: List[Job] = []
        token = None
        while len(found) < limit:
            query: Dict[str, Any] = {"page_size": min(1000, limit - len(found)), "page_token": token, "states": state}
            query["labels"] = [f"{key}={value}" for key, value in (labels or {}).items()]
            reply = self.transport.json("GET", "/v1/jobs", query=query)
            found += [Job(self, info) for info in reply.get("jobs") or []]
            token = reply.get("next_page_token")
            if not token:
                break
        return found[:limit]

    def workers(self) -> Any:
        """The Workers and their slots: a row for each slot."""
        rows = []
        for worker in self.transport.json("GET", "/v1/workers").get("workers") or []:
            for slot in worker.get("slots") or []:
                rows.append({"worker": worker.get("id"), "connected": worker.get("connected"), **slot})
        return as_frame(rows)

    # ---- what a Job asks for

    def submit_predict(self, id: str, data: Any, budget: Any = None, labels: Optional[Iterable[Any]] = None,
                       index: Any = None) -> Job:
        files: List[str] = []
        if is_table(data):
            path = self._write(data)
            if self._folder:
                files.append(path)
        else:
            path = os.path.abspath(os.path.expanduser(os.fspath(data)))
        request: Dict[str, Any] = {"data": path}
        if budget is not None:
            fields = budget_of(budget)
            request.update({"budget": fields["time"]} if "time" in fields else {"deadline": fields["deadline"]})
        try:
            reply = self.transport.json("POST", f"/v1/jobs/{id}:predict", request,
                                        headers={"Idempotency-Key": uuid.uuid4().hex})
        except TraindError:
            remove_files(files)
            raise
        return Job(self, job_of(reply), reply.get("warnings") or [], files, labels, index)

    def predict_rows(self, id: str, rows: Any, labels: Optional[Iterable[Any]] = None) -> Any:
        columns = columns_of(rows)
        texts = [[cell_text(value) for value in column] for column in columns.values()]
        request = {"columns": list(columns), "rows": [{"values": list(row)} for row in zip(*texts)]}
        reply = self.transport.json("POST", f"/v1/jobs/{id}:predictRows", request, repeatable=True)
        answer: Columns = {}
        answers = reply.get("rows") or []
        for i, name in enumerate(reply.get("targets") or []):
            answer[name] = relabelled([row["values"][i] for row in answers], labels or [])
        for i, name in enumerate(reply.get("classes") or []):
            answer[f"p_{name}"] = [float(row["probabilities"][i]) for row in answers]
        for i, name in enumerate(reply.get("quantile_columns") or []):
            answer[name] = [float(row["quantiles"][i]) for row in answers]
        return as_frame(answer, rows.index if is_frame(rows) else None)

    def job_events(self, id: str, silence: float) -> Iterator[Dict[str, Any]]:
        for event in self.transport.events(f"/v1/jobs/{id}/events", silence=silence):
            if event.name == "job":
                yield json.loads(event.data)

    def metric_points(self, id: str, names: Iterable[str] = ()) -> List[Dict[str, Any]]:
        """All points, or those of the named figures, in the order in which they were recorded."""
        query = {"columns": "true", "max_points": 0, "names": ",".join(names) or None}
        reply = self.transport.json("GET", f"/v1/jobs/{id}/metrics", query=query)
        points = []
        for series in reply["series"]:
            columns = zip(*(series[name] for name in ("sequence", "at_s", "step", "epoch", "value")))
            for sequence, at_s, step, epoch, value in columns:
                # Numbers that JSON cannot write are texts: "NaN", "Infinity".
                points.append({"sequence": sequence, "at": time_text(at_s), "fold": series["fold"],
                               "attempt": series["attempt"], "step": step, "epoch": epoch, "name": series["name"],
                               "value": float(value)})
        return sorted(points, key=lambda point: point["sequence"])

    # ---- specs

    def _write(self, data: Any) -> str:
        if isinstance(data, SharedTable):
            return self._write_shared(data)
        if self._folder:
            return TableFolder(self._folder).write(data)[0]
        # Another machine, which cannot read this one's files.
        with tempfile.TemporaryDirectory(prefix="traind-") as folder:
            return self.upload(TableFolder(folder).write(data)[0])

    def _write_shared(self, shared: SharedTable) -> str:
        if shared.path and self._folder:
            path = TableFolder(self._folder).new_path()
            try:
                os.link(shared.path, path)
                return path
            except OSError:
                pass  # its Job has ended already, or the file system has no links
        if not shared.path or self._folder:
            shared.path = self._write(shared.data)
        return shared.path

    def upload(self, path: str) -> str:
        """Sends a file that the server does not see, and returns the path by which a spec names it there.

        What is there already is not sent again; after a broken connection it goes on where it stopped.
        """
        with open(path, "rb") as f:
            digest = hashlib.sha256()
            for block in iter(lambda: f.read(_PART_BYTES), b""):
                digest.update(block)
            size = f.tell()
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", os.path.basename(path))[-128:]
            route = f"/v1/uploads/{digest.hexdigest()}/{'_' + name[1:] if name.startswith('.') else name}"
            part, offset = b"", 0
            while True:
                query = urllib.parse.urlencode({"size_bytes": size, "offset": offset})
                with self.transport.open("PUT", f"{route}?{query}", part,
                                         {"Content-Type": "application/octet-stream"}) as response:
                    reply = json.loads(response.read())
                if reply["present"]:
                    return str(reply["path"])
                offset = reply["offset"]
                f.seek(offset)
                part = f.read(min(_PART_BYTES, size - offset))
                if not part:
                    raise TraindError(f"{path} has become shorter while it was sent", "ABORTED")

    def _resolved(self, spec: Dict[str, Any]) -> Any:
        written: List[str] = []

        def write(data: Any) -> str:
            path = self._write(data)
            if self._folder:
                written.append(path)
            return path
        try:
            return resolved(spec, write)
        except BaseException:
            remove_files(written)
            raise

    def _text(self, spec: Any) -> str:
        is_path = isinstance(spec, os.PathLike) or (isinstance(spec, str) and "\n" not in spec and os.path.isfile(spec))
        if not is_path:
            if not isinstance(spec, str):
                raise TypeError(f"a spec is a dict, a YAML text or the path of a file, not {type(spec).__name__}")
            return spec
        with open(spec, encoding="utf-8") as f:
            return f.read()

    def _labels(self, spec: Dict[str, Any]) -> Optional[List[Any]]:
        """The values of the target, where the training rows are a table."""
        data = spec.get("data")
        train = data.get("train") if isinstance(data, dict) else None
        if isinstance(train, SharedTable):
            train = train.data
        if not isinstance(data, dict) or not is_table(train) or not isinstance(data.get("target"), str):
            return None
        values = columns_of(train).get(data["target"])
        return None if values is None else list(dict.fromkeys(v for v in values if v.__hash__ is not None))

    def close(self) -> None:
        """Stops the server, if it was started for this client."""
        if self.server:
            self.server.stop()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<traind Client {self.url}{' (its own server)' if self.server else ''}>"
