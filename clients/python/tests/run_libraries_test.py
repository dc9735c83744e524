"""The callbacks of traind_run in the libraries that they are for. A library that is not installed skips its cases."""
import importlib.util
import os
import random
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from run_fixture import Fold
from tests.cases import Skip, case, main

os.environ.update(KERAS_BACKEND="torch", TF_CPP_MIN_LOG_LEVEL="3", HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
warnings.simplefilter("ignore")


def need(*modules):
    for module in modules:
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            raise Skip(f"{module} is not installed")


def table(rows=200):
    """Rows of four numbers, and whether their sum is positive."""
    chance = random.Random(3)
    x = [[chance.gauss(0, 1) for _ in range(4)] for _ in range(rows)]
    return x, [int(sum(row) > 0) for row in x]


def arrays():
    import numpy
    x, y = table()
    return numpy.array(x, dtype="float32"), numpy.array(y)


def epochs_of(reports):
    return [r["epoch"] for r in reports]


# ---- boosted trees ----

TREES = {"lightgbm": {"objective": "binary", "verbosity": -1, "num_leaves": 4, "num_threads": 1},
         "xgboost": {"objective": "binary:logistic", "max_depth": 2, "nthread": 1, "verbosity": 0}}


def lightgbm_rounds(run, rounds, more=(), **options):
    import lightgbm
    x, y = arrays()
    data = lightgbm.Dataset(x[:150], y[:150])
    return lightgbm.train(TREES["lightgbm"], data, rounds, valid_sets=[data, data.create_valid(x[150:], y[150:])],
                          valid_names=["train", "valid"], callbacks=[run.lightgbm_callback(), *more], **options)


def xgboost_rounds(run, rounds, more=(), **options):
    import xgboost
    x, y = arrays()
    train, valid = xgboost.DMatrix(x[:150], y[:150]), xgboost.DMatrix(x[150:], y[150:])
    return xgboost.train(TREES["xgboost"], train, rounds, evals=[(train, "train"), (valid, "valid")], verbose_eval=False,
                         callbacks=[run.xgboost_callback(run.resumed + rounds), *more], **options)


@case("LightGBM reports its rounds with figures, keeps checkpoints, and goes on from one")
def _():
    need("lightgbm", "numpy")
    fold = Fold()
    model = lightgbm_rounds(fold.start(), 20)
    reports = fold.reports()
    assert reports[0]["epoch"] == 1 and reports[0]["epochs"] == 20 and model.num_trees() == 20, reports
    assert reports[0]["loss"] == reports[0]["train_binary_logloss"] and reports[0]["metric"] == reports[0]["valid_binary_logloss"]
    run = fold.start()
    path = run.resume()
    assert path.endswith("model.txt") and run.resumed >= 1
    again = lightgbm_rounds(run, 20 - run.resumed, init_model=path)
    assert again.num_trees() == 20 and fold.reports()[0]["epoch"] == run.resumed + 1


@case("LightGBM stops when it should, and after the rounds that the plan gives")
def _():
    need("lightgbm", "numpy")
    fold = Fold()

    def stop_at_five(state):
        if state.iteration == 4:
            fold.stop()
    model = lightgbm_rounds(fold.start(), 1000, [stop_at_five])
    reports = fold.reports()
    assert model.num_trees() == 5 and reports[-1]["epoch"] == 5, reports
    fold = Fold()
    assert lightgbm_rounds(fold.start(TRAIND_EPOCHS="7"), 1000).num_trees() == 7
    assert fold.reports()[-1]["epochs"] == 7


@case("LightGBM's early stopping, cross-validation and estimators work beside the callback")
def _():
    need("lightgbm", "numpy", "sklearn")
    import lightgbm
    fold = Fold()
    model = lightgbm_rounds(fold.start(), 300, [lightgbm.early_stopping(5, verbose=False)])
    assert 0 < model.best_iteration < 300, model.best_iteration
    x, y = arrays()
    short = lightgbm_rounds(Fold().start(), 3, [lightgbm.early_stopping(5, verbose=False)])
    assert short.best_iteration == 3
    fold = Fold()
    lightgbm.cv(TREES["lightgbm"], lightgbm.Dataset(x, y), 5, nfold=2, callbacks=[fold.start().lightgbm_callback()])
    assert fold.reports()[0]["epochs"] == 5 and fold.start().resume() is None
    fold = Fold()
    fold.stop()
    estimator = lightgbm.LGBMClassifier(n_estimators=50, verbosity=-1, n_jobs=1).fit(
        x, y, callbacks=[fold.start().lightgbm_callback()])
    assert estimator.booster_.num_trees() == 1 and len(estimator.predict(x)) == len(y)


@case("XGBoost reports its rounds with figures, keeps checkpoints, and goes on from one")
def _():
    need("xgboost", "numpy")
    fold = Fold()
    model = xgboost_rounds(fold.start(), 20)
    reports = fold.reports()
    assert reports[0]["epoch"] == 1 and reports[-1] == {**reports[-1], "epoch": 20, "epochs": 20}, reports
    assert reports[0]["loss"] == reports[0]["train_logloss"] and reports[0]["metric"] == reports[0]["valid_logloss"]
    assert model.num_boosted_rounds() == 20
    run = fold.start()
    path = run.resume()
    assert path.endswith("model.ubj") and run.resumed >= 1
    again = xgboost_rounds(run, 20 - run.resumed, xgb_model=path)
    assert again.num_boosted_rounds() == 20 and fold.reports()[0]["epoch"] == run.resumed + 1


@case("XGBoost stops when it should, and after the rounds that the plan gives; cv() and estimators work, too")
def _():
    need("xgboost", "numpy", "sklearn")
    import xgboost
    fold = Fold()
    fold.stop()
    assert xgboost_rounds(fold.start(), 1000).num_boosted_rounds() == 1
    assert xgboost_rounds(Fold().start(TRAIND_EPOCHS="7"), 1000).num_boosted_rounds() == 7
    x, y = arrays()
    fold = Fold()
    xgboost.cv(TREES["xgboost"], xgboost.DMatrix(x, y), 5, nfold=2, callbacks=[fold.start().xgboost_callback(5)])
    assert fold.reports()[-1]["epoch"] == 5 and fold.start().resume() is None
    fold.stop()
    assert len(xgboost.cv(TREES["xgboost"], xgboost.DMatrix(x, y), 5, nfold=2, callbacks=[fold.start().xgboost_callback(5)])) == 1
    fold = Fold()
    fold.stop()
    estimator = xgboost.XGBClassifier(n_estimators=50, n_jobs=1, callbacks=[fold.start().xgboost_callback()]).fit(x, y)
    assert estimator.get_booster().num_boosted_rounds() == 1


# ---- networks ----

def lightning_trainer(library, run, epochs=3, more=(), **options):
    """(trainer, module, its data)"""
    import torch
    x, y = (torch.tensor(part) for part in table())
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=50)

    class Net(library.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)
            self.batches = 0

        def training_step(self, batch, index):
            self.batches += 1
            loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
            self.log("train_loss", loss, on_epoch=True)
            return loss

        def validation_step(self, batch, index):
            self.log("val_acc", (self.layer(batch[0]).argmax(1) == batch[1]).float().mean())

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 0.05)

    torch.manual_seed(1)
    trainer = library.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, **options,
                              callbacks=[run.lightning_callback(metric="val_acc"), *more], enable_progress_bar=False,
                              enable_model_summary=False, num_sanity_val_steps=0)
    return trainer, Net(), data


def lightning_case(name):
    need("torch", name)
    library = importlib.import_module(name)
    fold = Fold()
    run = fold.start()
    trainer, net, data = lightning_trainer(library, run)
    trainer.fit(net, data, data)
    reports = fold.reports()
    assert epochs_of(reports) == [0, 1, 2, 3] and {r["epochs"] for r in reports} == {3}, reports
    assert reports[3]["metric"] == reports[3]["val_acc"] > 0.5 and 0 < reports[3]["loss"] < reports[1]["loss"], reports
    # A second start goes on after the epoch of the checkpoint.
    run = fold.start()
    path = run.resume()
    done = run.resumed
    assert path.endswith("last.ckpt") and 1 <= done <= 3
    trainer, net, data = lightning_trainer(library, run, epochs=5)
    trainer.fit(net, data, data, ckpt_path=path)
    assert epochs_of(fold.reports()) == list(range(done, 6)) and net.batches == 4 * (5 - done), net.batches
    # It ends at the next batch.
    fold = Fold()
    fold.stop()
    trainer, net, data = lightning_trainer(library, fold.start(), epochs=50)
    trainer.fit(net, data, data)
    assert net.batches == 1 and epochs_of(fold.reports()) == [0] and fold.start().resume() is None, net.batches
    fold = Fold()
    trainer, net, data = lightning_trainer(library, fold.start(TRAIND_EPOCHS="2"), epochs=50)
    trainer.fit(net, data, data)
    assert net.batches == 8 and fold.reports()[-1]["epochs"] == 2


@case("Lightning reports its epochs, goes on from a checkpoint, stops at a batch, and keeps to the plan's epochs")
def _():
    lightning_case("lightning.pytorch")


@case("pytorch_lightning does, too")
def _():
    kept = {n: sys.modules.pop(n) for n in list(sys.modules) if n.partition(".")[0] == "lightning"}
    try:
        lightning_case("pytorch_lightning")
    finally:
        sys.modules.update(kept)


def transformers_trainer(fold, run, epochs=3, **options):
    import torch
    import transformers
    x, y = table(64)
    rows = [{"input_ids": [int(abs(v) * 4) % 16 for v in row], "labels": label} for row, label in zip(x, y)]
    torch.manual_seed(1)
    config = transformers.BertConfig(vocab_size=16, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
                                     intermediate_size=8, max_position_embeddings=8, num_labels=2)
    arguments = transformers.TrainingArguments(
        output_dir=os.path.join(fold.folder, "trainer"), num_train_epochs=epochs, per_device_train_batch_size=16,
        eval_strategy="epoch", save_strategy="epoch", logging_strategy="epoch", report_to=[], use_cpu=True, disable_tqdm=True,
        **options)
    trainer = transformers.Trainer(
        model=transformers.BertForSequenceClassification(config), args=arguments, train_dataset=rows, eval_dataset=rows,
        compute_metrics=lambda found: {"accuracy": float((found.predictions.argmax(1) == found.label_ids).mean())})
    trainer.add_callback(run.transformers_callback(metric="eval_accuracy"))
    return trainer


@case("The Trainer of transformers reports, goes on from a checkpoint, stops at a step, and keeps to the plan's epochs")
def _():
    need("torch", "transformers", "accelerate")
    fold = Fold()
    run = fold.start()
    transformers_trainer(fold, run).train()
    reports = fold.reports()
    assert epochs_of(reports)[0] == 0 and epochs_of(reports)[-1] == 3.0 and {r["epochs"] for r in reports} == {3}, reports
    assert {"loss", "metric", "eval_loss"} <= {name for r in reports for name in r}, reports
    run = fold.start()
    path = run.resume()
    assert path.endswith("checkpoint-12") and run.resumed == 3
    trainer = transformers_trainer(fold, run, epochs=5)
    trainer.train(resume_from_checkpoint=path)
    assert trainer.state.global_step == 20 and min(epochs_of(fold.reports())) >= 3
    fold = Fold()
    fold.stop()
    trainer = transformers_trainer(fold, fold.start(), epochs=50)
    trainer.train()
    assert trainer.state.global_step == 1, trainer.state.global_step
    fold = Fold()
    trainer = transformers_trainer(fold, fold.start(TRAIND_EPOCHS="2"), epochs=50)
    trainer.train()
    assert trainer.state.global_step == 8 and fold.reports()[-1]["epochs"] == 2, trainer.state.global_step


def keras_fit(run, model, epochs, more=()):
    x, y = arrays()
    return model.fit(x, y, epochs=epochs, initial_epoch=run.resumed, batch_size=50, verbose=0, validation_data=(x, y),
                     callbacks=[run.keras_callback("val_accuracy"), *more])


@case("Keras reports its epochs, goes on from a checkpoint, stops at a batch, and keeps to the plan's epochs")
def _():
    need("torch", "keras")
    import keras

    def build():
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, activation="softmax")])
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model
    fold = Fold()
    run = fold.start()
    keras_fit(run, build(), 3)
    reports = fold.reports()
    assert epochs_of(reports) == [1, 2, 3] and {r["epochs"] for r in reports} == {3}, reports
    assert reports[0]["metric"] == reports[0]["val_accuracy"] and reports[0]["loss"] > 0, reports
    run = fold.start()
    path = run.resume()
    assert path.endswith("model.keras") and 1 <= run.resumed <= 3
    keras_fit(run, keras.models.load_model(path), 5)
    assert epochs_of(fold.reports()) == list(range(run.resumed + 1, 6))
    fold = Fold()
    fold.stop()
    model = build()
    keras_fit(fold.start(), model, 50)
    assert int(model.optimizer.iterations) == 1 and fold.reports() == []
    fold = Fold()
    model = build()
    keras_fit(fold.start(TRAIND_EPOCHS="2"), model, 50)
    assert int(model.optimizer.iterations) == 8 and fold.reports()[-1]["epochs"] == 2


@case("Scalars of numpy and torch are figures")
def _():
    need("torch", "numpy")
    import numpy
    import torch
    fold = Fold()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fold.start().report(loss=torch.tensor(0.5, requires_grad=True), metric=numpy.float32(0.25),
                            top=torch.tensor(float("nan")), rows=numpy.int64(3))
    assert fold.reports() == [{"loss": 0.5, "metric": 0.25, "top": None, "rows": 3.0}]


main()
