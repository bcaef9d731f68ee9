#!/usr/bin/env python3
"""Predicts with the ONNX file of an exported model: onnx_predict.py EXPORT MODEL.onnx DATA.csv"""
import sys

import medley_features
import onnxruntime

export, model, data = sys.argv[1:]
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
ids, numerics = medley_features.read(export, data)
inputs = {"ids": ids, "numerics": numerics}
(predictions,) = session.run(None, {each.name: inputs[each.name] for each in session.get_inputs()})
for row in predictions.reshape(len(predictions), -1).tolist():
    print(*row, sep=",")
