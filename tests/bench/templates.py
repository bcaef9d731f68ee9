#!/usr/bin/python3
"""Compares the job file that `medley init` writes with scikit-learn, on tables of several kinds:

./dev bench templates [CASE...] [--seeds 1,2,3] [--json FILE]

  adult      recorded; 32,561 rows; AUC
  churn      generated; 20,000 rows, 2 % of them positive; AUC
  houses     generated; 10,000 rows, a log-normal price; R2
  products   generated; 15,000 rows, 30 classes; AUC (mean of one class against the others) and accuracy

The job file is trained as it is written. scikit-learn has the defaults of its models, with the usual preparation: one-hot
categories, filled and standardised numbers for the linear model (LogisticRegression or Ridge), ordinal categories for
HistGradientBoosting. For the price, scikit-learn also models its logarithm, and the better of both counts. All predict the
same test rows, and the same code computes the metric. The figures are medians over the seeds, which are those of the
generator, of the order of Adult's rows, and of scikit-learn. Bar: the better of both minus 0.01.

Exit status: 0 if every figure reaches its bar, else 1.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
from sklearn import compose, ensemble, impute, linear_model, metrics, pipeline, preprocessing

import template_data

ROOT = template_data.ROOT
MEDLEY = os.path.join(os.environ.get("MEDLEY_BIN_DIR", os.path.join(ROOT, "build/bin")), "medley")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
TASKS = {"adult": "binary", "churn": "binary", "houses": "regression", "products": "multiClass"}
METRICS = {"binary": ["AUC"], "regression": ["R2"], "multiClass": ["AUC", "accuracy"]}
ALLOWED = 0.01


def score(task, label, predicted, classes):
    """By metric. `predicted`: numbers of a regression, else the probabilities of `classes`, a column for each."""
    if task == "regression":
        return {"R2": metrics.r2_score(label, predicted)}
    if task == "binary":
        return {"AUC": metrics.roc_auc_score(label == classes[1], predicted[:, 1])}
    each = [metrics.roc_auc_score(label == name, predicted[:, i]) for i, name in enumerate(classes)]
    return {"AUC": statistics.mean(each), "accuracy": float((numpy.array(classes)[predicted.argmax(axis=1)] == label).mean())}


def features_of(train, label):
    """What scikit-learn sees: no columns that differ in every row, dates as numbers."""
    text = [name for name in train.columns if train[name].dtype == object and name != label]
    dates = [name for name in text if train[name].str.fullmatch(r"\d{4}-\d\d-\d\d").all()]
    keys = [name for name in train.columns if name != label and name not in dates and train[name].nunique() == len(train)
            and (name in text or name.endswith("_id"))]
    categories = [name for name in text if name not in dates + keys]
    numbers = [name for name in train.columns if name not in text + keys + [label]]
    return categories, numbers, dates


def with_dates(table, dates):
    table = table.copy()
    for name in dates:
        table[name] = table[name].astype("datetime64[ns]").astype("int64") / 86400e9
    return table


def linear(task, categories, numbers):
    prepare = compose.ColumnTransformer([
        ("categories", pipeline.make_pipeline(impute.SimpleImputer(strategy="constant", fill_value="missing"),
                                              preprocessing.OneHotEncoder(handle_unknown="ignore")), categories),
        ("numbers", pipeline.make_pipeline(impute.SimpleImputer(strategy="median", add_indicator=True),
                                           preprocessing.StandardScaler()), numbers)])
    model = linear_model.Ridge() if task == "regression" else linear_model.LogisticRegression(max_iter=1000)
    return pipeline.make_pipeline(prepare, model)


def boosting(task, categories, numbers, seed):
    encoder = preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=numpy.nan,
                                           encoded_missing_value=numpy.nan)
    prepare = compose.ColumnTransformer([("categories", encoder, categories), ("numbers", "passthrough", numbers)])
    kind = ensemble.HistGradientBoostingRegressor if task == "regression" else ensemble.HistGradientBoostingClassifier
    return pipeline.make_pipeline(prepare, kind(categorical_features=list(range(len(categories))), random_state=seed))


def scikit(task, train, test, label, seed):
    """(metrics of the linear model, metrics of boosting)."""
    categories, numbers, dates = features_of(train, label)
    train, test = with_dates(train, dates), with_dates(test, dates)
    answers = []
    for model in (linear(task, categories, numbers + dates), boosting(task, categories, numbers + dates, seed)):
        if task != "regression":
            model.fit(train, train[label])
            answers.append(score(task, test[label], model.predict_proba(test), list(model.classes_)))
            continue
        plain = score(task, test[label], model.fit(train, train[label]).predict(test), [])
        logs = model.fit(train, numpy.log(train[label]))
        answers.append(max(plain, score(task, test[label], numpy.exp(logs.predict(test)), []), key=lambda s: s["R2"]))
    return answers


def run(command, folder):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, timeout=3000,
                          check=False)
    if done.returncode:
        sys.exit(f"templates: {' '.join(command)}: {(done.stdout + done.stderr).strip()[-1500:]}")
    return done.stdout


def medley(task, train, test, label, folder, change=None):
    """(metrics, seconds of `medley run`). `change` edits the job file: for experiments only."""
    train.to_csv(os.path.join(folder, "train.csv"), index=False)
    test.drop(columns=[label]).to_csv(os.path.join(folder, "new.csv"), index=False)
    run([MEDLEY, "init", "train.csv", "--label", label, "--task", task, "-o", "job.yaml"], folder)
    if change:
        change(os.path.join(folder, "job.yaml"))
    begin = time.monotonic()
    log = run([MEDLEY, "run", "job.yaml", "--plain", "--export", "model"], folder)
    seconds = time.monotonic() - begin
    with open(os.path.join(folder, "run.log"), "w", encoding="utf-8") as out:
        out.write(log)
    lines = run([MEDLEY, "predict", "model", "new.csv"] + (["--all"] if task == "multiClass" else []), folder)
    values = numpy.array([[float(field) for field in row] for row in csv.reader(lines.splitlines())])
    if len(values) != len(test):
        sys.exit(f"templates: medley predict printed {len(values)} lines for {len(test)} rows")
    if task == "regression":
        return score(task, test[label], values[:, 0], []), seconds
    with open(os.path.join(folder, "model/model.json"), encoding="utf-8") as file:
        model = json.load(file)
    if task == "multiClass":
        return score(task, test[label], values, model["classes"]), seconds
    with open(os.path.join(folder, "model/schema.json"), encoding="utf-8") as file:
        positive = json.load(file)["label"]["positive"]
    classes = [name for name in sorted(test[label].unique()) if name != positive] + [positive]
    return score(task, test[label], numpy.concatenate([1 - values, values], axis=1), classes), seconds


def measure(case, seeds, folder):
    """By metric: [linear, boosting, medley], each a list by seed; and the seconds of the longest run."""
    task = TASKS[case]
    found, longest = {name: [[], [], []] for name in METRICS[task]}, 0
    for seed in seeds:
        train, test, label = template_data.TABLES[case](seed)
        ours, seconds = medley(task, train, test, label, tempfile.mkdtemp(dir=folder))
        longest = max(longest, seconds)
        for at, answer in enumerate([*scikit(task, train, test, label, seed), ours]):
            for name, value in answer.items():
                found[name][at].append(value)
    return found, longest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="default: all")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--json", help="file for all figures")
    arguments = parser.parse_args()
    unknown = [case for case in arguments.cases if case not in TASKS]
    if unknown:
        sys.exit(f"templates: no case {unknown[0]}; there are {', '.join(TASKS)}")
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    figures, failed = [], 0
    print("| case | metric | linear | boosting | medley | difference | bar | met | longest run |\n|---|---|---|---|---|---|---|---|---|",
          flush=True)
    with tempfile.TemporaryDirectory(prefix="medley-templates-") as folder:
        for case in arguments.cases or TASKS:
            found, seconds = measure(case, seeds, folder)
            for name, values in found.items():
                medians = [statistics.median(each) for each in values]
                difference = medians[2] - max(medians[:2])
                met = difference >= -ALLOWED
                failed += not met
                figures.append({"case": case, "metric": name, "linear": values[0], "boosting": values[1], "medley": values[2]})
                print(f"| {case} | {name} | {medians[0]:.4f} | {medians[1]:.4f} | {medians[2]:.4f} | {difference:+.4f} "
                      f"| {max(medians[:2]) - ALLOWED:.4f} | {'yes' if met else 'NO'} | {seconds:.0f} s |", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump({"seeds": seeds, "figures": figures}, out, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
