#!/usr/bin/env python3
"""Trains the same models on the same bytes with the engine and with PyTorch, in turn.

    tests/bench/engine.sh [WORKLOAD...] [--rounds 5] [--seconds 4] [--data DIR] [--usual] [--ranks N] [--no-compile]
                          [--device cuda] [--train JSON]

Prints one JSON line per workload (mlp512, mlp64, lstm, encoder, textnum, bert, resnet, resnet18, unet3d).

Both sides run on the same cores (--cores, by default as many as there are Ranks) with as many threads as Ranks. A rate is
the mean over a whole window of --seconds, with all stalls in it: samples per second of the CPU time of all threads, which
other programs disturb least, and samples per second by the clock. Our validation is taken out by its measured share of the
window, because the peer does not validate. Ours is trainrank, driven as a Worker does, with an ordinary spec.

  ours_samples_s      ours, by CPU time
  peer, peer_samples_s  the peer's fastest variant and its rate, by CPU time; compiled_samples_s is that of its fastest compiled one
  ratio, ratio_range  ours / peer's fastest in the same round: median, least and most
  wall_ratio          the same by the clock, over the variant that is fastest by the clock
  idiom_ratio         over the common idiom: eager, foreach AdamW, DataLoader
  given_up            the peer's variants that did not take their first steps within --give-up seconds of CPU time (five
                      times as many where they are compiled; three times as many by the clock), or cannot run here, with
                      the reason
  resolved_settings   what the Rank chose

With --device cuda both sides train on the first GPU, with all data in its memory, and all rates are by the clock. The peer's
compiled variants then take mode="max-autotune". --train overrides fields of the spec's `train`, such as
{"paths": {"cuda_graph": true}}.

--usual adds dropout 0.1, clipping and a cosine to ours alone. DIR (default: a folder of the cache directory) keeps the data,
made once by tests/bench/generate_data.py.
"""
import argparse
import hashlib
import json
import os
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
JOB_S = 60  # the time that a Rank believes to have, of which it is watched for --seconds
IDIOM = "eager/foreach/dl0"
COMPILED = ["compile/fused/mem", "compile_bf16/fused/mem"]
COMPILED_PATIENCE = 5  # compilation takes a minute or more
BY_THE_CLOCK = 3
WORKLOADS = {
    "mlp512": {"peer": "mlp", "batch": 512, "table": "tabular.csv", "model": {"mlp": {"hidden": [256, 256]}},
               "variants": ["eager/fused/mem", "bf16/fused/mem"], "lr": 1e-3},
    "mlp64": {"peer": "mlp", "batch": 64, "table": "tabular.csv", "model": {"mlp": {"hidden": [256, 256]}},
              "variants": ["eager/fused/mem", "bf16/fused/mem"], "lr": 1e-3},
    "lstm": {"peer": "lstm", "batch": 128, "table": "series_timed.csv", "model": {"lstm": {"hidden": 128, "layers": 2}},
             "variants": ["eager/fused/mem", "bf16/fused/mem"], "lr": 1e-3, "series": True},
    "encoder": {"peer": "encoder", "batch": 128, "table": "series_timed.csv", "series": True, "lr": 1e-3,
                "model": {"transformer": {"width": 64, "heads": 4, "layers": 2, "feedforward": 128}},
                "variants": ["eager/fused/mem", "bf16/fused/mem/math"]},
    # Tokens as words of a text: the same ones, as often, under other numbers.
    "textnum": {"peer": "textnum", "batch": 16, "accumulation": 4, "table": "text.csv", "lr": 5e-4, "loss": "smape",
                "text": {"columns": ["text"], "vocabulary": 8192, "max_tokens": 128},
                "model": {"text": {"width": 128, "heads": 4, "layers": 4, "feedforward": 512, "attention": "plain"}},
                "variants": ["eager/fused/mem", "bf16/fused/mem", "bf16/fused/mem/math"]},
    # BERT-tiny: its sizes, random weights.
    "bert": {"peer": "bert", "batch": 32, "job_s": 300, "table": "text_classes.csv", "lr": 5e-4, "no_dropout": True,
             "text": {"columns": ["text"], "tokenizer": "pretrained", "max_tokens": 130}, "bert": True,
             "model": {"text": {"architecture": "bert", "width": 128, "heads": 2, "layers": 2, "feedforward": 512, "dropout": 0.0}},
             "variants": ["eager/fused/mem", "bf16/fused/mem"]},
    # Steps are long, and a Rank tries bf16 where that takes a twentieth of its time at most.
    "resnet": {"peer": "resnet", "batch": 128, "job_s": 300, "least_s": 9, "table": "images.csv", "images": 32, "lr": 2e-3,
               "model": {"cnn": {"width": 32, "blocks": [1, 1, 1]}},
               "variants": ["eager/fused/mem", "eager/fused/mem/cl", "bf16/fused/mem/cl"]},
    # The same images, each pixel four times.
    "resnet18": {"peer": "resnet18", "batch": 64, "job_s": 600, "least_s": 15, "table": "images64.csv", "images": 64, "lr": 1e-3,
                 "model": {"cnn": {"architecture": "resnet18"}}, "no_dropout": True,
                 "variants": ["eager/fused/mem", "eager/fused/mem/cl", "bf16/fused/mem/cl"]},
    # Patches as large as the volumes.
    "unet3d": {"peer": "unet3d", "batch": 2, "job_s": 300, "least_s": 9, "table": "volumes.csv", "volumes": True, "lr": 2e-3,
               "model": {"unet3d": {"base": 8, "levels": 3}},
               "variants": ["eager/fused/mem", "eager/fused/mem/cl", "bf16/fused/mem", "bf16/fused/mem/cl"]},
}


def spec_of(work, options):
    """A resolved spec: as traind hands it to Workers."""
    architecture, sizes = next(iter(work["model"].items()))
    train = {"epochs": 100000, "batch": work["batch"], "patience": 0, "learning_rate": work["lr"],
             "schedule": {"kind": "constant", "warmup_steps": 0}, "clip_norm": 0, "precision": options.precision}
    if options.usual:
        train.update(schedule={"kind": "cosine"}, clip_norm=1.0)
    train.update(json.loads(options.train))
    data = {"train": os.path.join(options.data, work["table"]), "target": "y", "seed": 7, "folds": 10}
    if "accumulation" in work:
        train["accumulation"] = work["accumulation"]
    if "loss" in work:
        train["loss"] = {"kind": work["loss"]}
    if "text" in work:
        data["text"] = work["text"]
    task = {"type": "regression", "metric": "rmse"}
    if work.get("images"):
        # One of six folds: trained on five sixths, as the peer is.
        data.update(folds=6, split="kfold", image={"column": "file", "size": work["images"], "channels": 3})
        task = {"type": "classification", "metric": "accuracy"}
    if work.get("volumes"):
        # One of five folds: trained on four fifths, as the peer is.
        data.update(folds=5, split="kfold", volume={"image": "image", "mask": "mask"})
        del data["target"]
        train["patches"] = {"size": [32, 64, 64], "per_volume": 1}
        task = {"type": "segmentation", "metric": "dice"}
    if work.get("series"):
        task["type"] = "forecasting"
        # The last of four folds, forward: trained on the first four fifths, as the peer is.
        data.update(time="t", window=60, horizon=0, folds=4, split="forward")
    model = {}
    if work.get("bert"):
        folder = os.path.join(options.data, "bert_tiny")
        task = {"type": "classification", "metric": "accuracy"}
        data["text"] = {**work["text"], "model_file": os.path.join(folder, "vocab.txt")}
        with open(os.path.join(folder, "config.json")) as config:
            model["pretrained"] = {"folder": folder, "config": config.read(), "tokenizer_config": "{}",
                                   "sha256": digest(os.path.join(folder, "model.safetensors"))}
    if not work.get("no_dropout"):
        sizes = {**sizes, "dropout": 0.1 if options.usual else 0.0}
    return {"api": "v1", "task": task, "data": data, "train": train, "model": {architecture: sizes, **model}}


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def cpu_s(pid):
    """CPU seconds of all threads of a process so far, also of those that have ended."""
    return time.clock_gettime((~pid << 3) | 2)  # the process's CPU clock, as clock_getcpuclockid() names it


def mean_rates(rows_per_step, samples, validations):
    """(samples per CPU second of a Rank, samples per second) over the whole window between the first and the last of
    `samples`, (clock, CPU seconds of a Rank, step); None where no step was seen in it. validations: (clock, seconds) of
    each, whose share of the window does not count."""
    (begin, cpu_begin, first), (end, cpu_end, last) = samples[0], samples[-1]
    if last <= first:
        return None
    trained = 1 - sum(seconds for at, seconds in validations if begin < at <= end) / (end - begin)
    rows = rows_per_step * (last - first)
    return rows / ((cpu_end - cpu_begin) * trained), rows / ((end - begin) * trained)


def judged(rates, options):
    """Of (by CPU time, by the clock) what both sides are judged by: on a GPU the clock alone."""
    return rates if options.device == "cpu" else (rates[1], rates[1])


class Silent(Exception):
    """A child did not answer in time, or ended."""


class Process:
    """Speaks JSON lines with a child that runs on some cores alone."""

    def __init__(self, *command, cores=None, **options):
        pin = (lambda: os.sched_setaffinity(0, cores)) if cores else None
        # A session of its own, so that what it starts (compilers) ends with it.
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=pin,
                                      start_new_session=True, **options)

    def say(self, text):
        self.child.stdin.write(text + "\n")
        self.child.stdin.flush()

    def hear(self):
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit(f"{self.child.args[0]} ended with {self.child.wait()}")
        return json.loads(line)

    def answer(self, limit_s):
        """The next line of a child that says one line for each it is told. The limit is one of CPU time, so that a busy
        machine gives nobody up; by the clock it is BY_THE_CLOCK times as long."""
        begin, cpu_begin = time.monotonic(), cpu_s(self.child.pid)
        while not select.select([self.child.stdout], [], [], 0.2)[0]:
            if cpu_s(self.child.pid) - cpu_begin > limit_s:
                raise Silent(f"not within {limit_s:.0f} s of CPU time")
            if time.monotonic() - begin > BY_THE_CLOCK * limit_s:
                raise Silent(f"not within {BY_THE_CLOCK * limit_s:.0f} s")
        line = self.child.stdout.readline()
        if not line:
            raise Silent(f"ended with {self.child.wait()}")
        return json.loads(line)

    def close(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()


class Engine:
    """A table that is prepared once, and Ranks that train a fold of it for some seconds."""

    def __init__(self, work, options):
        self.work, self.options = work, options
        self.state = tempfile.mkdtemp(prefix="traind-engine-")
        self.spec = json.dumps(spec_of(work, options))
        self.attempt = 0
        os.makedirs(os.path.join(self.state, "jobs/bench"))
        if work.get("bert"):  # as a Submit keeps the weights
            os.makedirs(os.path.join(self.state, "cache"))
            weights = os.path.join(options.data, "bert_tiny/model.safetensors")
            shutil.copy(weights, os.path.join(self.state, f"cache/{digest(weights)}.safetensors"))
        prepare = Process(os.path.join(options.bin, "worker/trainprep"), stderr=subprocess.DEVNULL)
        prepare.say(json.dumps({"type": "prepare", "attempt": 1, "job": "bench", "state_dir": self.state,
                                "spec_json": self.spec, "remaining_ms": -1}))
        while True:
            message = prepare.hear()
            if message["type"] == "table_ready":
                self.table = message["table"]
            if message["type"] == "failed":
                raise SystemExit(f"prepare: {message}")
            if message["type"] == "finished":
                break
        prepare.close()

    def train(self, seconds):
        """(mean_rates of all Ranks' samples, resolved_settings, the last validation)."""
        self.attempt += 1
        world = self.options.ranks
        # As a Worker leaves a Rank its GPU.
        env = {**os.environ, "CUDA_VISIBLE_DEVICES": "0" if self.options.device == "cuda" else ""}
        ranks = [Process(os.path.join(self.options.bin, "worker/trainrank"), cores=self.options.cores, env=env,
                         stderr=subprocess.DEVNULL) for _ in range(world)]
        port = 20000 + os.getpid() % 20000 + self.attempt
        for r, rank in enumerate(ranks):
            rank.say(json.dumps({
                "type": "train", "attempt": self.attempt, "job": "bench", "state_dir": self.state,
                "spec_json": self.spec, "table": self.table, "fold": 3 if self.work.get("series") else 0,
                "rank": r, "world_size": world, "rendezvous": {"host": "127.0.0.1", "port": port, "timeout_ms": 30000},
                "device": self.options.device, "threads": 1, "epochs": 100000, "stop_ms": int(1000 * self.work.get("job_s", JOB_S)),
                "remaining_ms": -1}))
        resolved_settings, progress, validation, validations = None, [], None, []
        while True:
            message = ranks[0].hear()
            if message["type"] == "started":
                resolved_settings = {k: message[k] for k in ("precision", "batch", "resolved_settings") if k in message}
            elif message["type"] == "progress":
                cpu = sum(cpu_s(rank.child.pid) for rank in ranks) / world
                progress.append((time.perf_counter(), cpu, message["step"]))
                if progress[-1][0] - progress[0][0] > seconds + 1:
                    break
            elif message["type"] == "epoch":
                validation = {k: message[k] for k in ("epoch", "val_loss", "val_metric")}
                validations.append((time.perf_counter(), message["evaluate_s"]))
            elif message["type"] == "failed":
                raise SystemExit(f"train: {message}")
            elif message["type"] == "finished":
                break
        for rank in ranks:
            rank.close()
        # Without the first second, which is the probe's and the caches'.
        window = [p for p in progress if p[0] >= progress[0][0] + 1] if progress else []
        rows = resolved_settings["batch"] * world * self.work.get("accumulation", 1)
        rates = mean_rates(rows, window, validations) if len(window) > 1 else None
        if rates is None:
            raise SystemExit(f"{self.work['peer']}: too slow to be timed in {seconds} s; use more --seconds")
        return judged(rates, self.options), resolved_settings, validation

    def close(self):
        shutil.rmtree(self.state, ignore_errors=True)


def add_time(folder):
    """The series with a column that orders its rows, which a forecast needs."""
    timed = os.path.join(folder, "series_timed.csv")
    if os.path.exists(timed):
        return
    with open(os.path.join(folder, "series.csv")) as source, open(timed + ".part", "w") as out:
        for row, line in enumerate(source):
            out.write(f"{row if row else 't'},{line}")
    os.rename(timed + ".part", timed)


def add_text(folder):
    """The texts as a table: "t17 t4 ..." of the tokens 17, 4, ..., which are the words to be told apart."""
    path = os.path.join(folder, "text.csv")
    if os.path.exists(path):
        return
    import numpy
    tokens, numbers, values = (numpy.load(os.path.join(folder, f"txt_{n}.npy")) for n in ("tok", "num", "y"))
    with open(path + ".part", "w") as out:
        out.write("text," + ",".join(f"n{i}" for i in range(numbers.shape[1])) + ",y\n")
        for row, known, value in zip(tokens, numbers, values):
            out.write(" ".join(f"t{t}" for t in row if t) + "," + ",".join(f"{v:.9g}" for v in (*known, value)) + "\n")
    os.rename(path + ".part", path)


def add_bert(folder):
    """A folder as transformers saves it, of BERT-tiny's body at random; and the texts with a class, whether their value is
    above the median."""
    import numpy
    table, own = os.path.join(folder, "text_classes.csv"), os.path.join(folder, "bert_tiny")
    if os.path.exists(table):
        return
    os.makedirs(own, exist_ok=True)
    tokens, targets = (numpy.load(os.path.join(folder, f"txt_{n}.npy")) for n in ("tok", "y"))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"t{t}" for t in range(1, 8192)]
    with open(os.path.join(own, "vocab.txt"), "w") as f:
        f.write("\n".join(words) + "\n")
    with open(os.path.join(own, "config.json"), "w") as f:
        json.dump({"model_type": "bert", "hidden_act": "gelu", "hidden_size": 128, "num_attention_heads": 2, "num_hidden_layers": 2,
                   "intermediate_size": 512, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "pad_token_id": 0,
                   "type_vocab_size": 2, "vocab_size": len(words), "hidden_dropout_prob": 0.0,
                   "attention_probs_dropout_prob": 0.0}, f)
    width, wide = 128, 512
    shapes = {"embeddings.word_embeddings.weight": [len(words), width], "embeddings.position_embeddings.weight": [512, width],
              "embeddings.token_type_embeddings.weight": [2, width], "embeddings.LayerNorm.weight": [width]}
    for layer in ("encoder.layer.0", "encoder.layer.1"):
        shapes.update({f"{layer}.attention.{part}.weight": [width, width]
                       for part in ("self.query", "self.key", "self.value", "output.dense")})
        shapes.update({f"{layer}.intermediate.dense.weight": [wide, width], f"{layer}.output.dense.weight": [width, wide],
                       f"{layer}.attention.output.LayerNorm.weight": [width], f"{layer}.output.LayerNorm.weight": [width]})
    shapes.update({name.replace(".weight", ".bias"): shape[:1] for name, shape in shapes.items() if "embeddings.w" not in name
                   and "embeddings.p" not in name and "embeddings.t" not in name})
    random, begin, header, values = numpy.random.default_rng(7), 0, {}, []
    for name, shape in shapes.items():
        scale, mean = (0.02, 0) if len(shape) == 2 else (0, 1 if name.endswith("weight") else 0)
        values.append((mean + scale * random.standard_normal(shape)).astype("<f4").tobytes())
        header["bert." + name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, begin + len(values[-1])]}
        begin += len(values[-1])
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(os.path.join(own, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + b"".join(values))
    with open(table + ".part", "w") as out:
        out.write("text,y\n")
        for row, above in zip(tokens, targets > numpy.median(targets)):
            out.write(" ".join(f"t{t}" for t in row if t) + f",{'high' if above else 'low'}\n")
    os.rename(table + ".part", table)


def add_volumes(folder):
    """The volumes as a file each, and a table that names them; their bytes are the array's."""
    table = os.path.join(folder, "volumes.csv")
    if os.path.exists(table):
        return
    import numpy
    os.makedirs(os.path.join(folder, "volumes"), exist_ok=True)
    arrays = {"image": "vol_x.npy", "mask": "vol_m.npy"}
    arrays = {kind: numpy.load(os.path.join(folder, file), mmap_mode="r") for kind, file in arrays.items()}
    with open(table + ".part", "w") as out:
        out.write("image,mask\n")
        for number in range(len(arrays["image"])):
            names = [f"volumes/{number:03}_{kind}.npy" for kind in arrays]
            for name, array in zip(names, arrays.values()):
                numpy.save(os.path.join(folder, name), array[number, 0])
            out.write(",".join(names) + "\n")
    os.rename(table + ".part", table)


def add_images(folder, name, size):
    """The images as PNG files, and a table that names them; their bytes are the array's, each pixel (size / 32)^2 times."""
    table = os.path.join(folder, f"{name}.csv")
    if os.path.exists(table):
        return
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    times = size // 32

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def values(name):  # NPY, version 1.0
        with open(os.path.join(folder, name), "rb") as f:
            begin = f.read(10)
            f.seek(10 + int.from_bytes(begin[8:10], "little"))
            return f.read()
    pixels, classes, plane = values("img_x.npy"), values("img_y.npy"), 32 * 32
    with open(table + ".part", "w") as out:
        out.write("file,y\n")
        for number in range(len(classes) // 8):
            image = pixels[number * 3 * plane:(number + 1) * 3 * plane]  # [3, 32, 32]
            rgb = bytes(v for i in range(plane) for v in (image[i], image[i + plane], image[i + 2 * plane]))
            wide = [b"".join(rgb[i:i + 3] * times for i in range(y * 96, (y + 1) * 96, 3)) for y in range(32)]
            lines = b"".join((b"\0" + line) * times for line in wide)
            with open(os.path.join(folder, f"{name}/{number:05}.png"), "wb") as f:
                f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0))
                        + chunk(b"IDAT", zlib.compress(lines, 1)) + chunk(b"IEND", b""))
            out.write(f"{name}/{number:05}.png,{classes[number * 8]}\n")
    os.rename(table + ".part", table)


class Peer:
    """The peer's variants of a workload, a process each, so that one may be given up."""

    def __init__(self, work, options):
        self.options = options
        # A loader of single rows does not fit data that are in a GPU's memory.
        self.variants = ([IDIOM] if options.device == "cpu" else []) + work["variants"] + ([] if options.no_compile else COMPILED)
        self.given_up = {}
        self.processes = {}
        for variant in self.variants:
            process = Process(options.python, os.path.join(HERE, "peers/pytorch_peer.py"), work["peer"], variant,
                              "--data", options.data, "--batch", str(work["batch"]), "--threads", str(options.ranks),
                              "--device", options.device, cores=options.cores, stderr=subprocess.DEVNULL)
            self.processes[variant] = process
            if options.device == "cpu":  # where they would take each other's time
                self._begin(variant)
        if options.device != "cpu":
            for variant in self.variants:
                self._begin(variant)

    def _begin(self, variant):
        """Waits for its first steps."""
        answer = self._ask(variant, self.options.give_up * (COMPILED_PATIENCE if variant in COMPILED else 1))
        if answer and not answer["ready"]:
            self._give_up(variant, answer["why"])

    def train(self, variant, seconds):
        """(samples per CPU second, samples per second), or None: it was given up."""
        if variant in self.given_up:
            return None
        self.processes[variant].say(str(seconds))
        answer = self._ask(variant, seconds + self.options.give_up)
        # The CPU time of all threads, for each of the threads that train.
        return answer and judged((answer["samples"] * self.options.ranks / answer["cpu_seconds"],
                                  answer["samples"] / answer["seconds"]), self.options)

    def _ask(self, variant, limit_s):
        try:
            return self.processes[variant].answer(limit_s)
        except Silent as why:
            self._give_up(variant, str(why))
            return None

    def _give_up(self, variant, why):
        self.given_up[variant] = why
        self.processes[variant].close()

    def close(self):
        for variant, process in self.processes.items():
            if variant not in self.given_up:
                process.close()


def summary(ours, theirs):
    """The figures of a workload. ours: a (by CPU, by the clock) each round; theirs: variant -> the same."""
    by_cpu, by_clock = 0, 1
    whole = {v: rates for v, rates in theirs.items() if len(rates) == len(ours)}

    def median(rates, clock):
        return statistics.median(rate[clock] for rate in rates)

    def fastest(variants, clock):
        return max(variants, key=lambda v: median(whole[v], clock), default=None)

    def ratios(variant, clock):
        return sorted(round(a[clock] / b[clock], 3) for a, b in zip(ours, whole[variant])) if variant in whole else []

    def middle(values):
        return round(statistics.median(values), 3) if values else None

    best, compiled = fastest(whole, by_cpu), fastest([v for v in COMPILED if v in whole], by_cpu)
    cpu_ratios = ratios(best, by_cpu)
    return {
        "ours_samples_s": round(median(ours, by_cpu)), "peer": best,
        "peer_samples_s": round(median(whole[best], by_cpu)) if best else None,
        "compiled_samples_s": round(median(whole[compiled], by_cpu)) if compiled else None,
        "ratio": middle(cpu_ratios), "ratio_range": [cpu_ratios[0], cpu_ratios[-1]] if best else None,
        "wall_ratio": middle(ratios(fastest(whole, by_clock), by_clock)),
        "idiom_ratio": middle(ratios(IDIOM, by_cpu)),
        "variants": {v: round(median(rates, by_cpu)) for v, rates in whole.items()}}


def bench(name, options):
    work = WORKLOADS[name]
    # On a CPU some steps, and their probe, are long.
    seconds = max(options.seconds, work.get("least_s", 0) if options.device == "cpu" else 0)
    engine = Engine(work, options)
    peer = Peer(work, options)
    ours, theirs = [], {variant: [] for variant in peer.variants}
    turns = [None] + peer.variants
    for turn in range(options.rounds):
        for k in range(len(turns)):
            variant = turns[(k + turn) % len(turns)]  # another one begins each round
            if variant is None:
                rates, resolved_settings, validation = engine.train(seconds)
                ours.append(rates)
            elif rates := peer.train(variant, seconds):
                theirs[variant].append(rates)
    peer.close()
    engine.close()
    print(json.dumps({
        "work": name, "usual": options.usual, "ranks": options.ranks, "cores": options.cores, **summary(ours, theirs),
        "given_up": peer.given_up, "resolved_settings": resolved_settings, "validation": validation, "rounds": options.rounds,
        "load_1min": round(os.getloadavg()[0], 2)}), flush=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--bin", default="bazel-bin")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--data", default=os.path.expanduser("~/.cache/traind-bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--train", default="{}", metavar="JSON")
    parser.add_argument("--usual", action="store_true", help="dropout 0.1, clipping and a cosine for ours")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile among the peer's variants (minutes less)")
    parser.add_argument("--give-up", type=float, default=60, help="seconds of CPU time for the first steps of a peer's variant")
    parser.add_argument("--cores", type=lambda text: [int(c) for c in text.split(",")], help="such as 0,1; one for each Rank")
    options = parser.parse_args()
    if not options.cores and options.device == "cpu":  # with a GPU the host's cores are free
        options.cores = sorted(os.sched_getaffinity(0))[:options.ranks]
    unknown = [w for w in options.workloads if w not in WORKLOADS]
    if unknown:
        parser.error(f"unknown workload {unknown[0]} (known: {', '.join(WORKLOADS)})")
    if not os.path.exists(os.path.join(options.data, "manifest.json")):
        subprocess.run([options.python, os.path.join(HERE, "generate_data.py"), "--out", options.data, "--csv"],
                       check=True, stdout=subprocess.DEVNULL)
    add_time(options.data)
    add_text(options.data)
    for name in options.workloads or WORKLOADS:
        if size := WORKLOADS[name].get("images"):
            add_images(options.data, WORKLOADS[name]["table"].removesuffix(".csv"), size)
    if "bert" in (options.workloads or WORKLOADS):
        add_bert(options.data)
    if "unet3d" in (options.workloads or WORKLOADS):
        add_volumes(options.data)
    for name in options.workloads or WORKLOADS:
        bench(name, options)


if __name__ == "__main__":
    main()
