"""The dashboard and the alerts of traind: this file is their source.

    python3 deploy/monitoring.py         writes deploy/grafana/traind.json, deploy/prometheus/alerts.yml
                                         and deploy/prometheus/alerts_test.yml

Prometheus names the label `job` after the scrape, so the Job of a series is in `exported_job`.
"""
import json
import os

JOB = "{{exported_job}}"
GPU = "{{worker}} {{gpu}}"

# name, expression, time that it must hold, severity, summary, what to do
ALERTS = [
    ("TraindDown", 'up{job="traind"} == 0', "1m", "critical",
     "traind does not answer",
     "Workers train on and publish by their deadlines. Start traind on its state folder; it adopts them."),
    ("TraindNoWorker", "traind_workers == 0 and on(instance) sum by (instance) (traind_jobs) > 0", "1m", "critical",
     "No Worker is attached, and Jobs wait for one",
     "Look at the Worker's log and at the network between it and traind."),
    ("TraindWorkerLost", "traind_workers < max_over_time(traind_workers[30m])", "2m", "warning",
     "Fewer Workers are attached than within the last half hour",
     "Its folds continue from their checkpoints on other slots. Look at the machine."),
    ("TraindDeadlineAtRisk",
     "traind_job_deadline_slack_seconds < 120 and on(instance, exported_job) traind_job_folds_done_ratio == 0",
     "30s", "warning",
     f"{JOB} has less than 2 minutes, and no fold is trained",
     "Its answer may be a part of one model, or the floor. Give it more time or slots, or let it end: it answers in any case."),
    ("TraindDeadlinePassed", "traind_job_deadline_slack_seconds < -30", "30s", "critical",
     f"{JOB} is not over, 30 s after its deadline",
     "Look at the log of its Worker; the results folder has the answer that stands."),
    ("TraindDeadlineMissed", 'increase(traind_deadlines_total{outcome="missed"}[15m]) > 0', "0s", "warning",
     "A Job ended after its deadline",
     "trainctl list shows which; trainctl get tells where its time went."),
    ("TraindJobsFailed", 'sum by (instance) (traind_jobs_ended_total{state="FAILED"}) > '
     '(sum by (instance) (traind_jobs_ended_total{state="FAILED"} offset 15m) or 0 * sum by (instance) (traind_slots))',
     "0s", "warning",
     "A Job failed within the last 15 minutes",
     "trainctl list --state FAILED shows it with its reason."),
    ("TraindDiskFull", 'sum by (instance) (traind_jobs_ended_total{reason="STORAGE_FULL"}) > '
     '(sum by (instance) (traind_jobs_ended_total{reason="STORAGE_FULL"} offset 1h) or 0 * sum by (instance) (traind_slots))',
     "0s", "critical",
     "A Job ended because the disk was full",
     "trainctl gc frees what is due; a smaller --keep-disk keeps less."),
    ("TraindStoreSlow",
     "histogram_quantile(0.99, sum by (instance, le) (rate(traind_store_commit_seconds_bucket[5m]))) > 0.5",
     "5m", "warning",
     "One of a hundred commits of the store takes longer than 0.5 s",
     "Every acknowledgement waits for a commit. Look at the disk of the state folder."),
    ("TraindLogHeld", "traind_store_log_bytes > 256 * 1024 * 1024", "5m", "warning",
     "The write-ahead log of the store has more than 256 MiB",
     "Another program keeps a read transaction of traind.db open; fuser traind.db names it. The log is emptied when that "
     "ends."),
    ("TraindLoopSlow",
     "histogram_quantile(0.99, sum by (instance, le) (rate(traind_loop_turn_seconds_bucket[5m]))) > 1",
     "5m", "warning",
     "One of a hundred turns of the control loop takes longer than 1 s",
     "Decisions and answers wait for it. Look at the cores and the disk of the machine."),
    ("TraindErrors", 'sum by (instance) (rate(traind_http_requests_total{code=~"5.."}[5m])) > 0.05', "5m", "warning",
     "Calls over HTTP end with errors of traind",
     "Look at the log of traind."),
    ("TraindRestarts", 'changes(process_start_time_seconds{job="traind"}[1h]) > 2', "0s", "warning",
     "traind started again more than twice within an hour",
     "The last lines of its log tell why it ended."),
    ("TraindGpusPoorlyUsed",
     "avg by (instance) (traind_gpu_utilization_ratio) < 0.3 and on(instance) traind_folds_running > 0",
     "5m", "warning",
     "Folds train, and the GPUs compute in less than 30 % of the time",
     "The log of a fold says where its time goes. A larger train.batch helps where steps are short."),
    ("TraindDescriptors", 'process_open_fds{job="traind"} / process_max_fds{job="traind"} > 0.8', "5m", "warning",
     "traind has opened more than 80 % of the descriptors that it may open",
     "Look for clients that leave streams open, or raise LimitNOFILE."),
]

# title, unit, kind, [(expression, legend)]
PANELS = [
    ("Jobs that are not over", "short", "timeseries", [("traind_jobs", "{{state}}")]),
    ("Jobs that wait, by reason", "short", "timeseries", [("traind_jobs_waiting", "{{reason}}")]),
    ("Slots", "short", "timeseries", [("traind_slots", "{{state}}"), ("traind_folds_running", "folds that train")]),
    ("Workers", "short", "stat", [("traind_workers", "attached")]),
    ("GPUs: share of the time in which they compute", "percentunit", "timeseries",
     [("traind_gpu_utilization_ratio", GPU)]),
    ("GPUs: memory in use", "bytes", "timeseries", [("traind_gpu_memory_used_bytes", GPU)]),
    ("GPUs: power", "watt", "timeseries", [("traind_gpu_power_watts", GPU)]),
    ("GPUs: temperature", "celsius", "timeseries", [("traind_gpu_temperature_celsius", GPU)]),
    ("Time until the deadline", "s", "timeseries", [("traind_job_deadline_slack_seconds", JOB)]),
    ("Share of the planned models that are trained", "percentunit", "timeseries",
     [("traind_job_folds_done_ratio", JOB)]),
    ("Deadlines", "short", "timeseries", [("increase(traind_deadlines_total[1h])", "{{outcome}}")]),
    ("Jobs that ended", "short", "timeseries", [("increase(traind_jobs_ended_total[1h])", "{{state}} {{reason}}")]),
    ("Commits of the store", "s", "timeseries",
     [(f"histogram_quantile({q}, sum by (le) (rate(traind_store_commit_seconds_bucket[5m])))", f"quantile {q}")
      for q in (0.5, 0.99)]),
    ("Write-ahead log of the store", "bytes", "timeseries", [("traind_store_log_bytes", "{{instance}}")]),
    ("Turns of the control loop", "s", "timeseries",
     [(f"histogram_quantile({q}, sum by (le) (rate(traind_loop_turn_seconds_bucket[5m])))", f"quantile {q}")
      for q in (0.5, 0.99)]),
    ("Calls", "reqps", "timeseries",
     [(f"sum by (method) (rate(traind_{t}_requests_total[5m]))", f"{t} {{{{method}}}}") for t in ("grpc", "http")]),
    ("Calls, 99 of a hundred within", "s", "timeseries",
     [(f"histogram_quantile(0.99, sum by (le, method) (rate(traind_{t}_request_duration_seconds_bucket[5m])))",
       f"{t} {{{{method}}}}") for t in ("grpc", "http")]),
    ("Streams and connections", "short", "timeseries",
     [("traind_event_streams", "streams of events"), ("traind_http_connections", "HTTP connections")]),
    ("Events of the control loop", "ops", "timeseries", [("rate(traind_events_total[5m])", "events")]),
    ("Memory of traind", "bytes", "timeseries", [('process_resident_memory_bytes{job="traind"}', "resident")]),
    ("Cores that traind uses", "short", "timeseries", [('rate(process_cpu_seconds_total{job="traind"}[5m])', "cores")]),
]

HEADER = "# Made by deploy/monitoring.py; change that file.\n"


def expressions():
    """Every expression of the alerts and of the dashboard."""
    yield from (alert[1] for alert in ALERTS)
    yield from (expression for panel in PANELS for expression, _ in panel[3])


def alerts():
    lines = [HEADER + "groups:", "  - name: traind", "    rules:"]
    for name, expression, hold, severity, summary, advice in ALERTS:
        summary = summary.replace(JOB, "{{ $labels.exported_job }}")
        lines += [f"      - alert: {name}", f"        expr: {json.dumps(expression)}", f"        for: {hold}",
                  "        labels:", f"          severity: {severity}",
                  "        annotations:", f"          summary: {json.dumps(summary)}",
                  f"          description: {json.dumps(advice)}"]
    return "\n".join(lines) + "\n"


# Series, and the alerts that must fire at 10 minutes because of them; no other may.
SCENES = [
    ("all is well", {
        'up{job="traind", instance="a"}': "1x20", 'traind_workers{job="traind", instance="a"}': "2x20",
        'traind_jobs{job="traind", instance="a", state="RUNNING"}': "1x20",
        'traind_slots{job="traind", instance="a", state="idle"}': "0x20",
        'traind_job_deadline_slack_seconds{job="traind", instance="a", exported_job="j"}': "3600-60x20",
        'traind_job_folds_done_ratio{job="traind", instance="a", exported_job="j"}': "0x20"}, {}),
    ("traind is gone", {'up{job="traind", instance="a"}': "1x5 0x15"}, {"TraindDown": {"job": "traind"}}),
    ("a Worker of two is gone", {'traind_workers{job="traind", instance="a"}': "2x5 1x15"},
     {"TraindWorkerLost": {"job": "traind"}}),
    ("the only Worker is gone", {'traind_workers{job="traind", instance="a"}': "1x5 0x15",
                                 'traind_jobs{job="traind", instance="a", state="RUNNING"}': "1x20"},
     {"TraindNoWorker": {"job": "traind"}, "TraindWorkerLost": {"job": "traind"}}),
    ("no fold is trained near the deadline", {
        'traind_job_deadline_slack_seconds{job="traind", instance="a", exported_job="j"}': "650-60x20",
        'traind_job_folds_done_ratio{job="traind", instance="a", exported_job="j"}': "0x20"},
     {"TraindDeadlineAtRisk": {"job": "traind", "exported_job": "j"}}),
    ("folds train for long, and the GPUs have little to do", {
        'traind_folds_running{job="traind", instance="a"}': "2x20",
        'traind_gpu_utilization_ratio{job="traind", instance="a", worker="w", gpu="0"}': "0.1x20",
        'traind_gpu_utilization_ratio{job="traind", instance="a", worker="w", gpu="1"}': "0.3x20"},
     {"TraindGpusPoorlyUsed": {}}),
    ("a Job outlives its deadline", {
        'traind_job_deadline_slack_seconds{job="traind", instance="a", exported_job="j"}': "400-60x20",
        'traind_job_folds_done_ratio{job="traind", instance="a", exported_job="j"}': "0.6x20"},
     {"TraindDeadlinePassed": {"job": "traind", "exported_job": "j"}}),
    ("another program holds the write-ahead log", {
        'traind_store_log_bytes{job="traind", instance="a"}': "0+100000000x20"}, {"TraindLogHeld": {"job": "traind"}}),
    ("the first Job of a traind ends late, and fails for want of disk", {
        'traind_slots{job="traind", instance="a", state="idle"}': "1x20",
        'traind_deadlines_total{job="traind", instance="a", outcome="missed"}': "0x5 1x15",
        'traind_jobs_ended_total{job="traind", instance="a", state="FAILED", reason="STORAGE_FULL"}': "_x5 1x15"},
     {"TraindDeadlineMissed": {"job": "traind", "outcome": "missed"}, "TraindJobsFailed": {}, "TraindDiskFull": {}}),
]


def alerts_test():
    """What `promtool test rules` runs."""
    tests = []
    known = {alert[0]: alert for alert in ALERTS}
    for name, series, firing in SCENES:
        cases = []
        for alert in known.values():
            case = {"eval_time": "10m", "alertname": alert[0], "exp_alerts": []}
            if alert[0] in firing:
                labels = {"severity": alert[3], "instance": "a", **firing[alert[0]]}
                summary = alert[4].replace(JOB, labels.get("exported_job", ""))
                case["exp_alerts"] = [{"exp_labels": labels,
                                       "exp_annotations": {"summary": summary, "description": alert[5]}}]
            cases.append(case)
        tests.append({"name": name, "interval": "1m", "alert_rule_test": cases,
                      "input_series": [{"series": s, "values": v} for s, v in series.items()]})
    # JSON is YAML.
    return HEADER + json.dumps({"rule_files": ["alerts.yml"], "evaluation_interval": "15s", "tests": tests}, indent=1) + "\n"


def dashboard():
    source = {"type": "prometheus", "uid": "${source}"}
    panels = []
    for i, (title, unit, kind, targets) in enumerate(PANELS):
        panels.append({
            "id": i + 1, "title": title, "type": kind, "datasource": source,
            "gridPos": {"x": 12 * (i % 2), "y": 8 * (i // 2), "w": 12, "h": 8},
            "fieldConfig": {"defaults": {"unit": unit, **({} if unit == "s" else {"min": 0})}, "overrides": []},
            "targets": [{"refId": chr(ord("A") + k), "datasource": source, "expr": expression, "legendFormat": legend}
                        for k, (expression, legend) in enumerate(targets)]})
    return json.dumps({
        "title": "traind", "uid": "traind", "tags": ["traind"], "schemaVersion": 38, "editable": True,
        "annotations": {"list": []}, "time": {"from": "now-3h", "to": "now"}, "refresh": "10s",
        "templating": {"list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]},
        "panels": panels}, indent=1) + "\n"


FILES = {"grafana/traind.json": dashboard, "prometheus/alerts.yml": alerts, "prometheus/alerts_test.yml": alerts_test}

if __name__ == "__main__":
    for path, make in FILES.items():
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), path), "w", encoding="utf-8") as file:
            file.write(make())
