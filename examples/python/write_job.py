#!/usr/bin/env python3
"""Writes a job file that trains a model on a CSV file: write_job.py TRAIN.csv LABEL NUMERIC... > job.yaml

LABEL and NUMERIC are names of the file's header. The types are those that a build writes into build/python; editors and type checkers
know the fields by them, and programs do not need them to run.
"""
from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from medley_types import ResourcePool, TrainingJob


def this_machine() -> ResourcePool:
    return {"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": "here"},
            "spec": {"class": "CPU", "unit": {"resources": {"cpu": "1"}}, "limit": 1, "price": {"usdPerUnitHour": "0.1"}}}


def job(data: str, label: str, numeric: list[int | str]) -> TrainingJob:
    folder, file = os.path.split(os.path.abspath(data))
    return {"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "from-python"},
            "spec": {
                "model": {"name": "mlp", "parameters": {"hidden": [64, 32]}},
                "data": {"train": {"uri": f"file:///data/{file}", "format": "csv"},
                         "validation": {"fraction": 0.1},
                         "schema": {"header": True, "label": {"column": label}, "numeric": numeric},
                         "volume": {"hostPath": {"path": folder}, "mountPath": "/data"}},
                "training": {"epochs": 10, "evaluation": {"everyEpochs": 1}}}}


if __name__ == "__main__":
    train, target, *columns = sys.argv[1:]
    for each in (this_machine(), job(train, target, columns)):
        print(f"---\n{json.dumps(each, indent=1)}")  # JSON is YAML
