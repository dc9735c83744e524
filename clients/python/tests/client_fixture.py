"""Jobs as the server answers them, for tests of the client."""
from fake_traind import event


def job_like(state="RUNNING", version=1, **fields):
    return {"id": "blobs-1", "name": "blobs", "state": state, "version": version, "quality": None, "end_message": "",
            "scores": {"metric": "accuracy", "oof": None}, "folds": [], "warnings": [], **fields}


def ended(fake, csv="id,kind\n0,true\n", **fields):
    """The server has a Job that ends with the answer `csv`."""
    last = job_like("SUCCEEDED", 3, quality="FULL", **fields)
    fake.replies["POST /v1/jobs"] = [(200, {"job": job_like("QUEUED"), "created": True, "warnings": ["a column is constant"]})]
    fake.replies["GET /v1/jobs/blobs-1/events"] = [(200, event(job_like("RUNNING", 2)) + event(last))]
    fake.replies["GET /v1/jobs/blobs-1"] = [(200, last)]
    fake.replies["GET /v1/jobs/blobs-1/artifacts/predictions.csv"] = [(200, csv)]
    return last
