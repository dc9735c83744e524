"""The curves of a Job as a picture."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence

from .export import curves


def plot_points(job: Any, points: List[Dict[str, Any]], names: Sequence[str], ax: Any = None) -> Any:
    """Draws each run's values over the epochs, and returns the axes."""
    try:
        from matplotlib import pyplot
    except ImportError as e:
        raise ImportError("plot() needs matplotlib: pip install matplotlib") from e
    if ax is None:
        _, ax = pyplot.subplots()
    drawn = 0
    for run, figures in sorted(curves(job.info, points).items()):
        for name in names:
            series = figures.get(name, [])
            if series:
                label = run if len(names) == 1 else f"{run} {name}"
                ax.plot([p["epoch"] for p in series], [p["value"] for p in series], label=label)
                drawn += 1
    metric = job.scores.get("metric")
    ax.set_xlabel("epoch")
    ax.set_ylabel(", ".join(metric if name == "val_metric" and metric else name for name in names))
    ax.set_title(f"{job.id} {job.info.get('state')}")
    if 0 < drawn <= 12:
        ax.legend()
    return ax
