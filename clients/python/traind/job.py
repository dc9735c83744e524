"""A Job of the server: its state, its figures, its answer."""
from __future__ import annotations

import html
import math
import time
import urllib.parse
from typing import Any, Dict, Iterable, List, Optional

from . import ask_tell, export
from .errors import JobFailedError, LimitError, TraindError, UnreachableError, WaitTimeoutError
from .progress import ENDED, describe, make_progress, share_done
from .spec import budget_of
from .tables import Columns, as_frame, is_frame, read_columns, relabelled, remove_files

# A stream that says nothing for so long is opened anew.
_SILENCE_S = 30.0
_RECONNECT_S = 0.2


class Job:
    """A submitted Job, as the server knows it. The properties tell what was read last; `refresh()` reads it again.

    Threads: confined to one.
    """

    def __init__(self, client: Any, info: Dict[str, Any], warnings: Iterable[str] = (), files: Iterable[str] = (),
                 labels: Optional[Iterable[Any]] = None, index: Any = None):
        """files: tables that are removed when the Job has ended; labels: the target's values, as they were given;
        index: of the frame with the rows to predict."""
        self._client = client
        self._transport = client.transport
        self.info = info
        self._warnings = list(warnings)
        self._files = list(files)
        self._labels = labels
        self._index = index

    # ---- what it is

    @property
    def id(self) -> str:
        return self.info["id"]

    @property
    def name(self) -> str:
        return self.info.get("name") or self.id

    @property
    def status(self) -> str:
        """The state as it is now: QUEUED, PLANNING, RUNNING, FINALIZING, PAUSED, SUCCEEDED, FAILED or CANCELLED."""
        if not self.ended:
            self.refresh()
        return self.info["state"]

    @property
    def ended(self) -> bool:
        """Whether it had ended when it was read last."""
        return self.info.get("state") in ENDED

    @property
    def quality(self) -> Optional[str]:
        """FULL, DEGRADED or FLOOR: how much of the spec's training stands behind the answer."""
        return self.info.get("quality")

    @property
    def scores(self) -> Dict[str, Any]:
        """metric, and its values: oof (on rows that were held out), test, floor."""
        return self.info.get("scores") or {}

    @property
    def decisions(self) -> List[Dict[str, Any]]:
        """Each change of the plan with its time, rule and measured cause."""
        return self.info.get("decisions") or []

    @property
    def warnings(self) -> List[str]:
        return list(dict.fromkeys(self._warnings + (self.info.get("warnings") or [])))

    def refresh(self) -> "Job":
        self._set(self._transport.json("GET", self._path()))
        return self

    def _path(self, rest: str = "") -> str:
        return f"/v1/jobs/{urllib.parse.quote(self.id, safe='')}{rest}"

    def _set(self, info: Any) -> None:
        if isinstance(info, dict) and "id" in info:
            self.info = info
        if self.ended and self._files:
            remove_files(self._files)
            self._files = []

    # ---- waiting

    def wait(self, progress: bool = True, timeout: Optional[float] = None) -> "Job":
        """Returns when the Job has ended; Ctrl-C ends the waiting alone.

        JobFailedError: it ended without a prediction. WaitTimeoutError: it goes on after `timeout` seconds.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        shown = make_progress(self.name, progress)
        try:
            shown.update(self.info)
            while not self.ended:
                self._watch(end, shown)
        finally:
            shown.close()
        if self.info["state"] != "SUCCEEDED":
            why = self.info.get("end_message") or self.info.get("end_reason") or ""
            raise JobFailedError(f"{self.id} {self.info['state']}: {why}", self)
        return self

    def _watch(self, end: float, shown: Any) -> None:
        """Reads the stream of events until it ends, or the time is over."""
        left = end - time.monotonic()
        if left <= 0:
            raise WaitTimeoutError(f"{self.id} is still {self.info.get('state')}; it goes on")
        try:
            for event in self._client.job_events(self.id, min(_SILENCE_S, max(left, 0.05))):
                self._set(event)
                shown.update(self.info)
                if self.ended or time.monotonic() >= end:
                    return
        except (UnreachableError, LimitError):  # it restarts, or serves as many streams as it can
            if time.monotonic() >= end:
                return
        time.sleep(_RECONNECT_S)
        self.refresh()
        shown.update(self.info)

    # ---- changing

    def _act(self, verb: str) -> "Job":
        self._set(self._transport.json("POST", self._path(f":{verb}"), {}))
        return self

    def finish(self) -> "Job":
        """Stops training now; the models that exist predict."""
        return self._act("finish")

    def cancel(self) -> "Job":
        return self._act("cancel")

    def pause(self) -> "Job":
        return self._act("pause")

    def resume(self) -> "Job":
        return self._act("resume")

    def update(self, budget: Any = None, priority: Optional[int] = None) -> "Job":
        """Changes the time (from acceptance on, or a datetime as the deadline) or the priority."""
        change: Dict[str, Any] = {}
        if budget is not None:
            fields = budget_of(budget)
            change.update({"budget": fields["time"]} if "time" in fields else {"deadline": fields["deadline"]})
        if priority is not None:
            change["priority"] = priority
        self._set(self._transport.json("PATCH", self._path(), change))
        return self

    # ---- trials from outside

    def list_trials(self) -> Dict[str, Any]:
        """The trials with their scores so far: state (of the Job), trials, search, metric, higher_is_better."""
        return self._transport.json("GET", self._path("/trials"))

    def propose(self, settings: Dict[str, Any], request_id: Optional[str] = None) -> Dict[str, Any]:
        """Adds a trial to a Job with `search: {method: ask}`, and returns {"trial": ..., "created": ...}.

        settings: values by the names of the space; those left out are as in trial 0. A repeated call with the same
        request_id answers the same trial. SpecError: a setting is not of the space. StateError, LimitError: the Job
        takes no more.
        """
        return ask_tell.propose(self, settings, request_id)

    def ask_tell(self, ask: ask_tell.Ask, tell: ask_tell.Tell, poll_s: float = 0.2) -> "Job":
        """Drives a Job with `search: {method: ask}` until it has ended.

        ask() returns a token and the settings of a further trial; it is called as long as slots are free. None ends
        the training, and what there is predicts. tell(token, trial) is called once a trial has its folds, or once the
        Job is over; trial.get("gain") tells how much better it is than trial 0 on the same folds; it is None where no
        fold was done.
        """
        ask_tell.AskTell(self, ask, tell, poll_s).run()
        return self.refresh()

    def delete(self) -> None:
        """Deletes a Job that has ended, with its models and answers."""
        self._transport.json("DELETE", self._path())

    # ---- the answer

    def artifact(self, name: str = "predictions.csv") -> bytes:
        """The bytes of a file of the Job: predictions.csv, predictions.npy, predictions.zip or manifest.json."""
        with self._transport.open("GET", self._path(f"/artifacts/{urllib.parse.quote(name)}")) as response:
            return response.read()

    def fetch(self, path: str, name: str = "predictions.csv") -> str:
        """Writes a file of the Job to `path`, and returns the path."""
        content = self.artifact(name)
        with open(path, "wb") as f:
            f.write(content)
        return path

    def predictions(self) -> Any:
        """The answer that stands now, a row for each test row: a pandas frame, or a dict of columns.

        It has the id (or the row's number), the predicted value, and p_<class> for each class.
        """
        columns = read_columns(self.artifact().decode("utf-8"))
        if self._labels is not None:
            # The columns are the id, the targets, and p_<class>.
            for name in [n for n in list(columns)[1:] if not n.startswith("p_")][:1]:
                columns[name] = relabelled(columns[name], self._labels)
        frame = as_frame(columns, self._index)
        if is_frame(frame):
            frame.attrs["traind_job"] = self.id
        return frame

    def predict(self, data: Any, budget: Any = None, progress: bool = False) -> Any:
        """Predicts other rows (a frame, columns, or the path of a file) with the models of this Job."""
        return self.submit_predict(data, budget).wait(progress).predictions()

    def submit_predict(self, data: Any, budget: Any = None) -> "Job":
        """Works like predict, but returns the predicting Job at once."""
        return self._client.submit_predict(self.id, data, budget, self._labels,
                                           data.index if is_frame(data) else None)

    def predict_rows(self, rows: Any) -> Any:
        """Predicts a few rows (at most 10,000) with models that stay loaded for a minute: faster from the second call on."""
        return self._client.predict_rows(self.id, rows, self._labels)

    def leaderboard(self) -> Any:
        """The models that answer, a row for each setting: name, kind, models, mean score, weight. The heaviest first.

        A Job that had nothing to predict has no weights yet: its rows are all models that were trained.
        """
        trials = {t.get("index"): t for t in self.info.get("trials") or []}
        groups: Dict[Any, List[Dict[str, Any]]] = {}
        for model in (self.info.get("predictions") or {}).get("members") or self._trained_models(trials):
            groups.setdefault((model.get("trial", 0), model["fold"] < 0, model.get("kind")), []).append(model)
        rows = []
        for (trial, is_floor, kind), models in groups.items():
            scores = [m["score"] for m in models if isinstance(m.get("score"), (int, float))]
            name = "floor" if is_floor else trials.get(trial, {}).get("name") or kind
            rows.append({"name": name, "kind": kind, "models": len(models),
                         "score": sum(scores) / len(scores) if scores else math.nan,
                         "weight": sum(m["weight"] for m in models), "complete": all(m.get("complete") for m in models)})
        rows.sort(key=lambda row: -row["weight"])
        return as_frame(rows)

    def answers(self) -> Any:
        """The answers that have stood, one after the other: number, at_s (since the Job's time began), quality, oof, comparable,
        test, models. What the time spent has bought."""
        columns: Columns = {name: [] for name in ("number", "at_s", "quality", "oof", "comparable", "test", "models")}
        for answer in (self.refresh().info.get("report") or {}).get("answers") or []:
            for name, column in columns.items():
                value = answer.get(name)
                column.append(math.nan if value is None and name in ("oof", "test") else value)
        return as_frame(columns)

    def importance(self) -> Any:
        """What the columns are worth: column, drop (how much worse the metric of validation rows gets where the column is
        shuffled), error (its standard error over the folds), folds. The most important one first; empty until the Job is over."""
        columns: Columns = {name: [] for name in ("column", "drop", "error", "folds")}
        for of in (self.refresh().info.get("report") or {}).get("importance") or []:
            for name, column in columns.items():
                value = of.get(name)
                column.append(math.nan if value is None and name == "error" else value)
        return as_frame(columns)

    def _trained_models(self, trials: Dict[Any, Dict[str, Any]]) -> List[Dict[str, Any]]:
        """The folds with a score, as members without weight."""
        return [{"fold": fold["index"], "trial": fold.get("trial", 0), "score": fold["score"], "weight": 0.0,
                 "kind": trials.get(fold.get("trial", 0), {}).get("kind", ""), "complete": fold.get("state") == "DONE"}
                for fold in self.info.get("folds") or [] if isinstance(fold.get("score"), (int, float))]

    # ---- figures

    def points(self, *names: str) -> List[Dict[str, Any]]:
        """Each recorded figure: sequence, at, fold, attempt, step, epoch, name, value."""
        return self._client.metric_points(self.id, names)

    def metrics(self, *names: str) -> Any:
        """The recorded figures as a pandas frame, or a dict of columns; `names` are those wanted, such as val_metric."""
        columns: Columns = {name: [] for name in export.POINT_FIELDS}
        for point in self.points(*names):
            for name, column in columns.items():
                column.append(point[name])
        return as_frame(columns)

    def plot(self, *names: str, ax: Any = None) -> Any:
        """Draws the curves, a line for each model, over the epochs; val_metric where no name is given. Needs matplotlib."""
        from .plot import plot_points
        names = names or ("val_metric",)
        return plot_points(self.refresh(), self.points(*names), names, ax)

    def export_csv(self, path: str) -> str:
        """Writes the figures as a table."""
        return export.write_csv(self.refresh().info, self.points(), path)

    def export_tensorboard(self, folder: str) -> List[str]:
        """Writes event files that TensorBoard reads, a run for each model: `tensorboard --logdir FOLDER`."""
        return export.write_tensorboard(self.refresh().info, self.points(), folder)

    def export_trace(self, path: str) -> str:
        """Writes the timeline of the Job; Perfetto (ui.perfetto.dev) and chrome://tracing open it."""
        return export.write_trace(self.refresh().info, self.points(), path)

    def export_mlflow(self, tracking_uri: Optional[str] = None, experiment: str = "traind") -> str:
        """Makes a run of MLflow with the figures, and returns its id. Needs mlflow."""
        return export.to_mlflow(self.refresh().info, self.points(), tracking_uri, experiment)

    # ---- shown

    def __repr__(self) -> str:
        return f"<traind Job {self.id}: {describe(self.info)}>"

    def _repr_html_(self) -> str:
        info, cells = self.info, []
        for name in ("oof", "test", "floor"):
            value = self.scores.get(name)
            if isinstance(value, (int, float)):
                cells.append(f"{self.scores.get('metric')} {name} {value:.4g}")
        lines = [describe(info), ", ".join(cells), f"deadline {info['deadline']}" if info.get("deadline") else "",
                 info.get("end_message") or ""]
        body = "".join(f"<div>{html.escape(line)}</div>" for line in lines if line)
        percent = 100 * share_done(info)
        return (f'<div style="border:1px solid #8888;border-radius:6px;padding:8px;max-width:36em">'
                f"<b>{html.escape(self.name)}</b> <code>{html.escape(self.id)}</code>"
                f'<div style="background:#8883;height:6px;margin:6px 0"><div style="background:#2a7;height:6px;'
                f'width:{percent:.0f}%"></div></div>{body}</div>')


def job_of(reply: Any) -> Dict[str, Any]:
    """The Job in a reply of submit or predict."""
    info = reply.get("job") if isinstance(reply, dict) else None
    if not isinstance(info, dict) or "id" not in info:
        raise TraindError(f"the server answered without a Job: {reply!r:.200}")
    return info
