"""Judges a history of calls to traind (recorder.py tells its form). It knows nothing but its lines.

    tests/histories/checker.py HISTORY... [--least-calls N]

Prints a JSON line for each violation, and one that sums up. Exits 1 if there is one.

A line may be judged by what was answered before it was called, never by what went on beside it. A call whose outcome
is unknown may have been done, or not. What a history must show:
  lost      whatever traind has told once is told by every later answer: Jobs, labels, versions, events, metrics;
  twice     a key of Submit has one Job; no measurement is there twice; another spec under the same key is refused;
  unasked   nobody finds a Job, or a label, that no call can have made;
  changed   what is over stays as it ended; an event or a metric stays as it was told;
  gap       sequences of events and metrics have no holes;
  worse     the standing Prediction is never worse than the one before, and never goes away;
  unsound   its file has the digest that its manifest, and at last the Job, tells;
  late      it stands before the deadline, and the Job is over then;
  open      every Job ends, and not as FAILED;
  harness   a fault struck, enough calls were answered, and the run came to its end.
"""
import argparse
import collections
import json
import sys

OVER = ("SUCCEEDED", "FAILED", "CANCELLED")
TOLERANCE = 1e-9
LOWER_IS_BETTER = ("log_loss", "rmse", "mae")
# Calls that change something: one that is unknown may have done so at any later moment.
CALLS = ("submit", "finish", "cancel", "label", "get", "list", "events", "metrics", "disk")


def over_time(lines):
    """(line, the lines that returned since the one before and before this one was called) in the order of calls."""
    returned = sorted(lines, key=lambda line: line["return"])
    at = 0
    for line in sorted(lines, key=lambda line: line["invoke"]):
        since = at
        while at < len(returned) and returned[at]["return"] < line["invoke"]:
            at += 1
        yield line, returned[since:at]


def done(lines, *ops):
    return [line for line in lines if line["outcome"] == "ok" and line["op"] in ops]


class Checker:
    def __init__(self, lines, least_calls):
        self.lines, self.violations = lines, []
        self.calls = [line for line in lines if line["op"] in CALLS]
        self.faults = done(lines, "fault")
        self.least_calls = least_calls
        self.keys = {line["input"]["key"] for line in lines if line["op"] == "submit"}
        self.of_job = collections.defaultdict(list)
        for line in self.calls:
            if line["job"] is not None:
                self.of_job[line["job"]].append(line)
        # Job -> what lists told of it, each as a line of its own. Looked up once: a long run has millions.
        self.listed = collections.defaultdict(list)
        for line in done(self.calls, "list"):
            for job in line["output"]["jobs"]:
                self.listed[job["id"]].append({"op": "list", "job": line["job"], "invoke": line["invoke"],
                                               "return": line["return"], "output": job})

    def say(self, rule, line, text):
        """line: where it shows; None: in the whole."""
        violation = {"rule": rule, "text": text}
        if line is not None:
            violation.update(op=line["op"], job=line["job"], at=round(line["invoke"], 3))
        self.violations.append(violation)

    def run(self):
        self.check_jobs_stay()
        self.check_keys()
        for job, lines in self.of_job.items():
            views = [(line, line["output"]) for line in done(lines, "get", "finish", "cancel", "label")]
            self.check_views(lines)
            self.check_labels(lines)
            self.check_log(done(lines, "events"), "events")
            self.check_log(done(lines, "metrics"), "points")
            self.check_measured_once(done(lines, "metrics"))
            self.check_standing(done(lines, "disk"))
            self.check_end(job, views, done(lines, "disk"))
        self.check_harness()
        return self.violations

    # ---- Jobs

    def check_jobs_stay(self):
        known = set()
        for line, past in over_time(self.calls):
            for told in past:
                if told["outcome"] == "ok":
                    known |= self.jobs_in(told)
            if line["op"] == "list" and line["outcome"] == "ok":
                for job in sorted(known - self.jobs_in(line)):
                    self.say("lost", line, f"{job} was acknowledged and is not in the list")
            elif line["job"] in known and line.get("error", "").startswith("NOT_FOUND"):
                self.say("lost", line, f"{line['job']} was acknowledged: {line['error']}")

    @staticmethod
    def jobs_in(line):
        if line["op"] == "list":
            return {job["id"] for job in line["output"]["jobs"]}
        if line["op"] == "submit":
            return {line["output"]["job"]}
        # A folder may be there before the Job is told of, or without it.
        return set() if line["op"] == "disk" else {line["job"]}

    def check_keys(self):
        """The name of a Job is the key of its Submit."""
        jobs, made = collections.defaultdict(set), collections.Counter()
        for line in done(self.calls, "submit"):
            key = line["input"]["key"]
            if line["input"]["other"]:
                self.say("twice", line, f"another spec under the key {key} was accepted")
            jobs[key].add(line["output"]["job"])
            made[key] += line["output"]["created"]
        for line in done(self.calls, "list"):
            for job in line["output"]["jobs"]:
                jobs[job["name"]].add(job["id"])
        for key in sorted(jobs):
            if len(jobs[key]) > 1 or made[key] > 1:
                self.say("twice", None, f"the key {key} has the Jobs {sorted(jobs[key])}, made {made[key]} times")
            if key not in self.keys:
                self.say("unasked", None, f"nobody has submitted {sorted(jobs[key])}, named {key}")

    def check_views(self, lines):
        """Versions grow; what is over stays so."""
        version, end, prediction = -1, None, None
        lists = self.listed[lines[0]["job"]]
        for line, past in over_time(done(lines, "get", "finish", "cancel", "label") + lists):
            for told in (told["output"] for told in past):
                version = max(version, told.get("version", -1))
                if told["state"] in OVER:
                    end = end or {}
                    end.update({k: told[k] for k in ("state", "end_reason", "finished_at") if k in told})
                    prediction = told.get("prediction") or prediction
            now = line["output"]
            if now.get("version", version) < version:
                self.say("lost", line, f"version {version} was told before, now {now['version']}")
            if end is None:
                continue
            differ = {k: (v, now[k]) for k, v in end.items() if k in now and now[k] != v}
            if differ:
                self.say("changed", line, f"it was over: {differ}")
            if prediction and "prediction" in now and now["prediction"] != prediction:
                self.say("changed", line, f"it was over with {prediction}, now {now['prediction']}")

    def check_labels(self, lines):
        """One client sets the label of a Job, to numbers that grow."""
        set_ok, seen = 0, 0
        tries = [line for line in lines if line["op"] == "label"]
        for line, past in over_time([x for x in lines if x["op"] in ("get", "finish", "cancel", "label")]):
            for told in past:
                if told["outcome"] == "ok":
                    seen = max(seen, told["output"]["label"])
                    set_ok = max(set_ok, told["input"].get("value", 0))
            if line["outcome"] != "ok":
                continue
            now = line["output"]["label"]
            if now < max(seen, set_ok):
                self.say("lost", line, f"the label was {max(seen, set_ok)}, now {now}")
            possible = {t["input"]["value"] for t in tries if t["invoke"] < line["return"] and t["outcome"] != "fail"}
            if now and now not in possible:
                self.say("unasked", line, f"the label is {now}; nobody set it, or it was refused")

    # ---- events and metrics

    def check_log(self, lines, name):
        entries, last = {}, 0
        for line, past in over_time(lines):
            for told in past:
                last = max([last] + [entry[0] for entry in told["output"][name]])
            after, answer = line["input"]["after"], line["output"][name]
            if line["output"].get("dropped"):
                self.say("gap", line, f"{line['output']['dropped']} {name} were dropped")
            for expected, entry in enumerate(answer, after + 1):
                if entry[0] != expected:
                    self.say("gap", line, f"{expected} is missing in the {name} after {after}: {entry[0]} comes")
                    break
            reached = max([after] + [entry[0] for entry in answer])
            if reached < last:
                self.say("lost", line, f"{name} up to {last} were told before, now up to {reached}")
            for entry in answer:
                if entries.setdefault(entry[0], entry) != entry:
                    self.say("changed", line, f"{name} {entry[0]}: {entries[entry[0]]} before, now {entry}")

    def check_measured_once(self, lines):
        points = {point[0]: point for line in lines for point in line["output"]["points"]}
        count = collections.Counter(tuple(point[2:6]) for point in points.values())
        for what, times in count.items():
            if times > 1:
                self.say("twice", lines[0], f"(fold, Attempt, step, name) {what} was recorded {times} times")

    # ---- Predictions

    def check_standing(self, lines):
        digests, best = {}, None
        for line, past in over_time(lines):
            for told in (told["output"] for told in past):
                if told.get("number") and (best is None or told["number"] > best["number"]):
                    best = told
            now = line["output"]
            if not now:
                if best:
                    self.say("worse", line, f"Prediction {best['number']} stood, now there is none")
                continue
            if now["number"] is None:
                self.say("unsound", line, f"`current` leads to nothing whole: {now['missing']}")
                continue
            if now["digest"] != now["told"]:
                self.say("unsound", line, f"Prediction {now['number']} has the digest {now['digest']}, "
                                          f"not {now['told']}")
            if digests.setdefault(now["number"], now["digest"]) != now["digest"]:
                self.say("changed", line, f"Prediction {now['number']} has another digest than before")
            if best:
                self.compare(line, best, now)

    def compare(self, line, before, now):
        if now["number"] < before["number"]:
            self.say("worse", line, f"Prediction {before['number']} stood, now {now['number']}")
        if before["quality"] == "FULL" and now["quality"] != "FULL":
            self.say("worse", line, f"the Prediction was FULL, now {now['quality']}")
        # Scores of other rows say nothing; and a fold that is whole counts more than a part that scored better.
        same_rows = before["folds"] == now["folds"] or (before["comparable"] and now["comparable"])
        if not same_rows or now["complete"] > before["complete"] or None in (before["score"], now["score"]):
            return
        sign = -1 if now["metric"] in LOWER_IS_BETTER else 1
        if sign * (now["score"] - before["score"]) < -TOLERANCE:
            self.say("worse", line, f"the score was {before['score']}, now {now['score']}")

    def check_end(self, job, views, disk):
        if not views:
            return
        line, last = max(views, key=lambda view: view[0]["invoke"])
        if last["state"] not in OVER or last["state"] == "FAILED":
            self.say("open", line, f"{job} is {last['state']} at last ({last['end_reason']})")
        if last["state"] != "SUCCEEDED":
            return
        deadline = last["deadline"]
        if deadline and last["finished_at"] > deadline:
            self.say("late", line, f"{job} was over {last['finished_at'] - deadline:.3f} s after its deadline")
        stood = set()  # (number, digest) that stood in time; to switch to it again later changes nothing
        for read in sorted(disk, key=lambda read: read["invoke"]):
            found = read["output"]
            if deadline and found and found.get("switched", 0) <= deadline:
                stood.add((found.get("number"), found.get("digest")))
            if not deadline or read["wall"] < deadline:
                continue
            if not found:
                self.say("late", read, "no Prediction stands after the deadline")
            elif found.get("switched", 0) > deadline and (found.get("number"), found.get("digest")) not in stood:
                self.say("late", read, f"it stands {found['switched'] - deadline:.3f} s after the deadline")
        if disk:
            at_last = max(disk, key=lambda read: read["invoke"])
            found = at_last["output"]
            told = last["prediction"] and (last["prediction"]["number"], last["prediction"]["sha256"])
            if told != (found.get("number"), found.get("digest")):
                self.say("unsound", at_last, f"the Job tells Prediction {told}, and {found} stands")

    # ---- the run itself

    def check_harness(self):
        answered = sum(line["outcome"] == "ok" for line in self.calls)
        if not any(fault["output"]["struck"] for fault in self.faults):
            self.say("harness", None, "no fault struck")
        if answered < self.least_calls:
            self.say("harness", None, f"{answered} calls were answered, at least {self.least_calls} should be")
        ends = done(self.lines, "end")
        if not ends:
            self.say("harness", None, "the run did not come to its end")
        elif not any(line["invoke"] > ends[-1]["return"] for line in self.calls if line["outcome"] == "ok"):
            self.say("harness", None, "nothing was answered after the last fault")


def check(lines, least_calls=1):
    """The violations of a history: [{"rule", "text", ...}]."""
    return Checker(lines, least_calls).run()


def quantile(values, share):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(share * len(values)))], 3) if values else None


def summary(lines):
    """Figures of a history."""
    calls = [line for line in lines if line["op"] in CALLS]
    faults = collections.Counter()
    for line in done(lines, "fault"):
        faults[line["input"]["fault"]] += line["output"]["struck"]
    recovered = [line["return"] - line["invoke"] for line in done(lines, "start")]
    return {"jobs": len({line["output"]["job"] for line in done(calls, "submit")}),
            "calls": dict(collections.Counter(line["outcome"] for line in calls)), "faults": dict(faults),
            "recovery_p50_s": quantile(recovered, 0.5), "recovery_p99_s": quantile(recovered, 0.99),
            "recovery_max_s": quantile(recovered, 1)}


def read(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("histories", nargs="+")
    parser.add_argument("--least-calls", type=int, default=1)
    options = parser.parse_args()
    wrong = 0
    for path in options.histories:
        lines = read(path)
        violations = check(lines, options.least_calls)
        for violation in violations:
            print(json.dumps(violation))
        print(json.dumps({"history": path, "violations": len(violations), **summary(lines)}))
        wrong += len(violations)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
