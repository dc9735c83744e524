"""Lets a training program keep a deadline under `trainctl run`. Without traind every call does nothing.

    from traind_run import run

    path = run.resume()                             # the newest checkpoint after a restart, else None
    for epoch in run.epochs(20, start=run.resumed):
        loss = train_one_epoch()
        run.report(loss=loss)
        save("model.pt")
        run.checkpoint("model.pt")

The file needs Python 3.8 and no other package, so it may be copied beside a script. docs/OWN_PROGRAM.md describes the
variables that it reads, and run.lightning_callback() and its like for programs whose loop is a library's.
"""
import contextlib
import importlib
import json
import math
import os
import select
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import warnings

__all__ = ["Run", "run"]

# A pipe takes so many bytes whole, whatever other processes write to it at the same time (PIPE_BUF of Linux).
_LINE_BYTES = 4096
# A reader that is late for longer misses the line.
_LINE_WAIT_MS = 200
_KEPT_CHECKPOINTS = 2
# A file that changes while it is copied is copied again so often.
_COPY_TRIES = 3
# Checkpoints that callbacks save take at most this share of the time.
_CHECKPOINT_SHARE = 0.1
_MANIFEST = "traind.json"
_PREFIX = "traind-"
_UNFINISHED = ".traind-"


def _warn(text):
    warnings.warn(f"traind_run: {text}", RuntimeWarning, stacklevel=3)


def _sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(folder):
    """Paths of the files below the folder -> bytes."""
    sizes = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            sizes[os.path.relpath(path, folder)] = os.path.getsize(path)
    return sizes


def _marks(path):
    """A file or a folder that has not changed has the same marks."""
    found = {".": os.stat(path)} if os.path.isfile(path) else {
        name: os.stat(os.path.join(path, name)) for name in _files(path)}
    return {name: (s.st_ino, s.st_size, s.st_mtime_ns) for name, s in found.items()}


def _copy(path, target):
    for _ in range(_COPY_TRIES):
        before = _marks(path)
        if os.path.isdir(path):
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(path, target)
        else:
            shutil.copyfile(path, target)
        if _marks(path) == before:
            return
    raise OSError(f"{path} changes while it is copied")


class _Reports:
    """Writes lines of JSON to the descriptor that traind reads."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._pipe = self._pipe_there()
        self._wait_ms = _LINE_WAIT_MS

    def _pipe_there(self):
        """The identity of the pipe, or None. A child that did not inherit the pipe may have any other file there."""
        if self._descriptor is None:
            return None
        try:
            found = os.fstat(self._descriptor)
        except OSError:
            return None
        return (found.st_dev, found.st_ino) if stat.S_ISFIFO(found.st_mode) else None

    def write(self, values):
        if self._pipe is None or self._pipe_there() != self._pipe:
            return
        line = json.dumps(values, allow_nan=False).encode() + b"\n"
        if len(line) > _LINE_BYTES:
            _warn(f"a report of {len(line)} bytes is left out; {_LINE_BYTES} are the most")
            return
        try:
            ready = select.poll()
            ready.register(self._descriptor, select.POLLOUT)
            writable = any(event & select.POLLOUT for _, event in ready.poll(self._wait_ms))
            if writable:
                os.write(self._descriptor, line)
            self._wait_ms = _LINE_WAIT_MS if writable else 0  # a reader that hangs costs one wait, not one for each line
        except OSError:
            self._pipe = None  # nobody reads any more


class Run:
    """The part of a Job that this process trains.

    fold, folds, seed: of this program; 0, 1 and 0 without traind.
    out: the folder for results; the current folder without traind.
    deadline: Unix seconds, None without one.
    resumed: epochs that the checkpoint of resume() has behind it, else 0.

    In a program of several processes the one with RANK 0 reports and saves checkpoints.
    """

    def __init__(self, environment=os.environ):
        self._environment = environment
        self.active = bool(environment.get("TRAIND_JOB"))
        self.fold = int(self._number("TRAIND_FOLD", 0))
        self.folds = int(self._number("TRAIND_FOLDS", 1))
        self.seed = int(self._number("TRAIND_SEED", 0))
        self.out = environment.get("TRAIND_OUT") or "."
        self.deadline = self._number("TRAIND_DEADLINE", None)
        self.resumed = 0
        self._stop_at = self._number("TRAIND_STOP_AT", None)
        self._stop_file = environment.get("TRAIND_STOP_FILE")
        self._most_epochs = self._number("TRAIND_EPOCHS", None)
        self._leads = environment.get("RANK", "0") in ("", "0")
        self._checkpoints = environment.get("TRAIND_CHECKPOINTS") if self._leads else None
        descriptor = self._number("TRAIND_REPORT_FD", None)
        self._reports = _Reports(int(descriptor) if descriptor is not None and self._leads else None)
        self._lock = threading.Lock()
        self._signalled = False
        self._loop = {}  # {"epoch", "epochs"} while epochs() runs
        self._reported = None  # the newest epoch of a report
        self._next_checkpoint = 0.0  # by time.monotonic(), of callbacks
        if self.active:
            self._catch_signal()

    def _number(self, name, default):
        text = self._environment.get(name)
        if not text:
            return default
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{name} is no number: {text!r}") from None

    def _catch_signal(self):
        if not hasattr(signal, "SIGUSR1") or threading.current_thread() is not threading.main_thread():
            return
        earlier = signal.getsignal(signal.SIGUSR1)

        def caught(number, frame):
            self._signalled = True
            if callable(earlier):
                earlier(number, frame)

        with contextlib.suppress(ValueError):  # an interpreter within another one
            signal.signal(signal.SIGUSR1, caught)
            signal.siginterrupt(signal.SIGUSR1, False)

    # ---- time ----

    def should_stop(self):
        """Whether the program should save what it has and end. Cheap enough for every batch."""
        return (self._signalled or (self._stop_at is not None and time.time() >= self._stop_at)
                or (bool(self._stop_file) and os.path.exists(self._stop_file)))

    def time_left(self):
        """Seconds until the program should stop: 0.0 once it should, math.inf without a deadline."""
        if self.should_stop():
            return 0.0
        return math.inf if self._stop_at is None else max(0.0, self._stop_at - time.time())

    def most_epochs(self, epochs):
        """The epochs to train in all: those asked for, or fewer where the plan gives fewer."""
        if epochs is None or self._most_epochs is None:
            return epochs if self._most_epochs is None else int(self._most_epochs)
        return min(epochs, int(self._most_epochs))

    def epochs(self, epochs, start=0):
        """Yields start, start + 1, ... up to the epochs that are to be trained, and ends when the program should stop.

        start is the number of epochs that are done already: run.resumed after a restart. An epoch without a report() is
        reported by itself.
        """
        most = self.most_epochs(epochs)
        self._send(start, most, {})
        for epoch in range(int(start), most):
            if self.should_stop():
                break
            self._loop = {"epoch": epoch + 1, "epochs": most}
            try:
                yield epoch
            finally:
                self._loop = {}
            if self._reported != epoch + 1:
                self._send(epoch + 1, most, {})

    # ---- reports ----

    def report(self, *, epoch=None, epochs=None, loss=None, metric=None, **metrics):
        """Reports figures: numbers, or scalars of numpy, torch and the like. Those that are None are left out.

        epoch: epochs done, by default those of the loop of epochs() with the running one. epochs: all that are planned.
        loss, metric: what the plan and the curves show; any other name is kept as a metric.
        """
        epoch = self._loop.get("epoch") if epoch is None else epoch
        epochs = self._loop.get("epochs") if epochs is None else epochs
        self._send(epoch, epochs, {"loss": loss, "metric": metric, **metrics})

    def _send(self, epoch, epochs, figures):
        values = {}
        for name, value in {**figures, "epoch": epoch, "epochs": epochs}.items():
            if value is None:
                continue
            try:
                value = value.detach() if hasattr(value, "detach") else value  # torch warns of a tensor with a gradient
                number = value if type(value) is int else float(value)
            except Exception as e:  # whatever a library's object raises; a report must not end a training
                _warn(f"{name} is left out of a report, because it is no number: {e}")
                continue
            values[name] = number if math.isfinite(number) else None
        if values.get("epoch") is not None:
            self._reported = values["epoch"]
        self._reports.write(values)

    # ---- checkpoints ----

    def checkpoint(self, path, epoch=None):
        """Copies a file or folder to where a restarted program finds it with resume(). Returns the copy's path.

        epoch: the epochs that it has behind it, by default those of the loop of epochs() with the running one. A copy is
        whole or not there; the newest two are kept. Returns None without traind, and where copying failed (a warning
        tells why).
        """
        if not self._checkpoints:
            return None
        path = os.fspath(path)
        name = os.path.basename(os.path.normpath(path))
        return self._save(name, lambda target: _copy(path, target), epoch)

    def resume(self):
        """The path of the newest whole checkpoint, or None. `resumed` then holds the epochs that are done."""
        folder = self._environment.get("TRAIND_CHECKPOINTS")
        for number in sorted(self._saved(folder), reverse=True):
            saved = os.path.join(folder, f"{_PREFIX}{number:08}")
            try:
                with open(os.path.join(saved, _MANIFEST), encoding="utf-8") as f:
                    manifest = json.load(f)
                if all(os.path.getsize(os.path.join(saved, n)) == size for n, size in manifest["files"].items()):
                    self.resumed = manifest["epoch"]
                    return os.path.join(saved, manifest["name"])
            except (OSError, ValueError, KeyError):
                continue  # the one before may be whole
        return None

    @staticmethod
    def _saved(folder):
        """The numbers of the checkpoints."""
        if not folder or not os.path.isdir(folder):
            return []
        return [int(n[len(_PREFIX):]) for n in os.listdir(folder) if n.startswith(_PREFIX) and n[len(_PREFIX):].isdigit()]

    def _save(self, name, write, epoch):
        """write(path) makes the file or folder `name`, which becomes a checkpoint when it is whole on the disk."""
        epoch = self._loop.get("epoch", self._reported or 0) if epoch is None else epoch
        folder = self._checkpoints
        with self._lock:
            self._remove(n for n in self._listed() if n.startswith(_UNFINISHED))
            try:
                unfinished = tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder)
                write(os.path.join(unfinished, name))
                with open(os.path.join(unfinished, _MANIFEST), "w", encoding="utf-8") as f:
                    files = {n: size for n, size in _files(unfinished).items() if n != _MANIFEST}
                    json.dump({"name": name, "epoch": epoch, "files": files}, f)
                for parent, _, names in os.walk(unfinished):
                    for path in [os.path.join(parent, n) for n in names] + [parent]:
                        _sync(path)
                number = 1 + max(self._saved(folder), default=0)
                target = os.path.join(folder, f"{_PREFIX}{number:08}")
                os.rename(unfinished, target)
                _sync(folder)
            except Exception as e:  # a full disk, a model that a library cannot save: training goes on
                self._remove(n for n in self._listed() if n.startswith(_UNFINISHED))
                _warn(f"no checkpoint of {name}: {e}")
                return None
            self._remove(f"{_PREFIX}{n:08}" for n in self._saved(folder) if n <= number - _KEPT_CHECKPOINTS)
        return os.path.join(target, name)

    def _listed(self):
        return os.listdir(self._checkpoints) if os.path.isdir(self._checkpoints) else []

    def _remove(self, names):
        for name in names:
            shutil.rmtree(os.path.join(self._checkpoints, name), ignore_errors=True)

    def _save_in_time(self, name, write, epoch):
        """Saves a checkpoint for a callback, unless the last ones took more than their share of the time."""
        began = time.monotonic()
        if not self._checkpoints or began < self._next_checkpoint:
            return
        self._save(name, write, epoch)
        ended = time.monotonic()
        self._next_checkpoint = ended + (ended - began) / _CHECKPOINT_SHARE

    # ---- callbacks: none of the libraries is imported before its callback is made ----

    def lightning_callback(self, loss="train_loss", metric=None):
        """A callback for lightning.pytorch.Trainer. loss, metric: names of logged figures.

            trainer = Trainer(max_epochs=20, callbacks=[run.lightning_callback(metric="val_acc")])
            trainer.fit(model, ckpt_path=run.resume())
        """
        return _lightning_callback(self, loss, metric)

    def transformers_callback(self, metric=None):
        """A callback for transformers.Trainer. metric: the name of a logged figure, as "eval_accuracy".

            trainer.add_callback(run.transformers_callback(metric="eval_accuracy"))
            trainer.train(resume_from_checkpoint=run.resume())

        The checkpoints are those that the Trainer saves (save_strategy).
        """
        return _transformers_callback(self, metric)

    def keras_callback(self, metric=None):
        """A callback for fit() of Keras 3. metric: the name of a figure, as "val_accuracy".

            path = run.resume()
            model = keras.models.load_model(path) if path else build()
            model.fit(x, y, epochs=20, initial_epoch=run.resumed, callbacks=[run.keras_callback("val_accuracy")])
        """
        return _keras_callback(self, metric)

    def lightgbm_callback(self):
        """A callback for lightgbm.train(), cv() and the estimators. An epoch is a round.

            path = run.resume()
            lightgbm.train(params, data, num_boost_round=500 - run.resumed, init_model=path,
                           callbacks=[run.lightgbm_callback()])
        """
        return _LightGbmCallback(self)

    def xgboost_callback(self, epochs=None):
        """A callback for xgboost.train(), cv() and the estimators. An epoch is a round; epochs: all that are planned.

            path = run.resume()
            xgboost.train(params, data, num_boost_round=500 - run.resumed, xgb_model=path,
                          callbacks=[run.xgboost_callback(500)])
        """
        return _xgboost_callback(self, epochs)


def _lightning_callback(this, loss, metric):
    # Two packages hold the same library; their classes differ.
    names = ["lightning.pytorch", "pytorch_lightning"]
    names.sort(key=lambda name: name not in sys.modules)
    try:
        base = importlib.import_module(names[0])
    except ImportError:
        base = importlib.import_module(names[1])

    class TraindCallback(base.Callback):
        def on_train_start(self, trainer, module):
            trainer.fit_loop.max_epochs = this.most_epochs(trainer.fit_loop.max_epochs)
            if trainer.is_global_zero:
                this._send(trainer.current_epoch, self._planned(trainer), {})

        def on_train_batch_end(self, trainer, module, *arguments, **options):
            # Processes that train one model must stop at the same batch.
            if trainer.strategy.reduce_boolean_decision(this.should_stop(), all=False):
                trainer.should_stop = True

        def on_train_epoch_end(self, trainer, module):
            done = trainer.current_epoch + 1
            if trainer.should_stop and not trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
                return  # a part of an epoch
            if trainer.is_global_zero:
                figures = trainer.callback_metrics
                this._send(done, self._planned(trainer),
                           {"loss": figures.get(loss), "metric": figures.get(metric), **figures})
            if trainer.world_size == 1:
                this._save_in_time("last.ckpt", trainer.save_checkpoint, done)

        @staticmethod
        def _planned(trainer):
            return trainer.max_epochs if (trainer.max_epochs or -1) > 0 else None

    return TraindCallback()


def _transformers_callback(this, metric):
    from transformers import TrainerCallback

    class TraindCallback(TrainerCallback):
        def on_train_begin(self, args, state, control, **options):
            this._send(state.epoch or 0, self._planned(state), {})

        def on_step_end(self, args, state, control, **options):
            if this.should_stop():
                control.should_training_stop = True

        def on_epoch_end(self, args, state, control, **options):
            this._send(state.epoch, self._planned(state), {})
            # A sum of many steps may lack some last bits.
            if state.epoch is not None and state.epoch + 1e-6 >= self._planned(state):
                control.should_training_stop = True

        def on_log(self, args, state, control, logs=None, **options):
            figures = {name: value for name, value in (logs or {}).items() if not isinstance(value, (str, dict, list))}
            this._send(state.epoch, self._planned(state), {"metric": figures.get(metric), **figures})

        def on_save(self, args, state, control, **options):
            if state.is_world_process_zero:
                this.checkpoint(os.path.join(args.output_dir, f"checkpoint-{state.global_step}"), epoch=state.epoch)

        @staticmethod
        def _planned(state):
            return this.most_epochs(state.num_train_epochs)

    return TraindCallback()


def _keras_callback(this, metric):
    from keras.callbacks import Callback

    class TraindCallback(Callback):
        cut = False

        def on_train_begin(self, logs=None):
            self.cut = False

        def on_train_batch_end(self, batch, logs=None):
            if this.should_stop():
                self.model.stop_training = self.cut = True

        def on_epoch_end(self, epoch, logs=None):
            if self.cut:
                return  # a part of an epoch
            planned = this.most_epochs(self.params.get("epochs"))
            this._send(epoch + 1, planned, {"metric": (logs or {}).get(metric), **(logs or {})})
            this._save_in_time("model.keras", self.model.save, epoch + 1)
            if planned is not None and epoch + 1 >= planned:
                self.model.stop_training = True

    return TraindCallback()


class _Rounds:
    """Reports the rounds of boosted trees; rounds are fast, so not each one is told."""

    _EVERY_S = 0.1

    def __init__(self, this):
        self._this = this
        self._next = 0.0

    def done(self, rounds, planned, figures, model, file):
        """Tells the rounds that are done. Returns whether to stop. figures: [(data, name, value)]; file: of checkpoints"""
        this = self._this
        wanted, planned = planned, this.most_epochs(planned)
        ends = planned is not None and rounds >= planned
        # Where the rounds end by themselves, the library has something to do after the last one.
        stop = this.should_stop() or (ends and planned != wanted)
        if stop or ends or time.monotonic() >= self._next:
            self._next = time.monotonic() + self._EVERY_S
            held_out = [value for data, _, value in figures if not data.startswith("train")]
            seen = [value for data, _, value in figures if data.startswith("train")]
            this._send(rounds, planned, {"loss": next(iter(seen), None), "metric": next(iter(held_out), None),
                                         **{f"{data}_{name}": value for data, name, value in figures}})
        if type(model).__name__ == "Booster" and not stop:  # the models of cv() cannot be gone on with
            this._save_in_time(file, model.save_model, rounds)
        return stop


class _LightGbmCallback:
    """A callable, as LightGBM wants its callbacks."""

    before_iteration = False

    def __init__(self, this):
        self._rounds = _Rounds(this)
        # After early_stopping(), which ends a training with its best round. LightGBM sees the object's own order alone.
        self.order = 40

    def __call__(self, state):
        figures = [(entry.dataset_name, entry.metric_name, entry.metric_value) if hasattr(entry, "dataset_name") else entry[:3]
                   for entry in state.evaluation_result_list or []]
        if self._rounds.done(state.iteration + 1, state.end_iteration, figures, state.model, "model.txt"):
            from lightgbm.callback import EarlyStopException
            raise EarlyStopException(state.iteration, state.evaluation_result_list)


def _xgboost_callback(this, epochs):
    from xgboost.callback import TrainingCallback

    class TraindCallback(TrainingCallback):
        rounds = _Rounds(this)

        def after_iteration(self, model, epoch, evals_log):
            done = model.num_boosted_rounds() if hasattr(model, "num_boosted_rounds") else epoch + 1
            figures = [(data, name, values[-1]) for data, named in evals_log.items() for name, values in named.items()]
            figures = [(data, name, value[0] if isinstance(value, tuple) else value) for data, name, value in figures]
            stop = self.rounds.done(done, epochs, figures, model, "model.ubj")
            if stop and type(model).__name__ != "Booster" and model.attr("best_iteration") is None:
                model.set_attr(best_iteration=str(epoch))  # cv() wants it of a training that was stopped
            return stop

    return TraindCallback()


run = Run()
