"""A Job with figures, as the server answers them, for tests of exports."""
AT = "2026-12-01T18:00:0{}.000Z"
JOB = {
    "id": "blobs-1", "state": "SUCCEEDED", "quality": "FULL", "accepted_at": AT.format(0), "started_at": AT.format(1),
    "finished_at": AT.format(9), "deadline": None, "scores": {"metric": "accuracy", "oof": 0.9},
    "decisions": [{"at": AT.format(3), "rule": "B2", "cause": "slow", "from": "5 folds", "to": "3 folds", "effect": ""}],
    "attempts": [
        {"id": 2, "task": "fold-0", "worker": "w", "started_at": AT.format(2), "ended_at": AT.format(4),
         "end_reason": "RANK_DIED", "message": "signal 9", "first_step": 0},
        {"id": 3, "task": "fold-0", "worker": "w", "started_at": AT.format(5), "ended_at": None, "end_reason": None,
         "message": "", "first_step": 10},
        {"id": 4, "task": "fold-1", "worker": "w", "started_at": AT.format(2), "ended_at": AT.format(6),
         "end_reason": "COMPLETED", "message": "", "first_step": 0},
    ],
}


def point(sequence, attempt, step, value, name="val_loss"):
    return {"sequence": sequence, "at": AT.format(2 + sequence % 5), "fold": 0, "attempt": attempt, "step": step,
            "epoch": step / 10, "name": name, "value": value}


# The second Attempt does steps 10 and 20 again.
POINTS = [point(1, 2, 10, 1.0), point(2, 2, 20, 0.9), point(3, 3, 20, 0.8), point(4, 3, 30, 0.7),
          point(5, 4, 10, float("nan")), point(6, 4, 10, 0.25, "val_metric")]
