"""The search that tests vary."""


def search_of(house, method, trials=8, budget="40s", **changes):
    """LightGBM whose own settings learn next to nothing: one leaf more than none, at a tiny rate."""
    spec = house.spec(rows=400, folds=2, budget=budget, **changes)
    spec["model"] = {"lightgbm": {"num_leaves": 2, "learning_rate": 0.002, "num_iterations": 60,
                                  "max_depth": 1}}
    del spec["train"]
    spec["task"]["metric"] = "logloss"
    spec["search"] = {"trials": trials, "method": method, "space": {
        "model.lightgbm.learning_rate": "log(0.002, 0.3)",
        "model.lightgbm.num_leaves": "int(2, 16)",
        "model.lightgbm.max_depth": [1, 4, 8]}}
    return spec
