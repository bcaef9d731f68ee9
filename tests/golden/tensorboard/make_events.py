#!/usr/bin/env python3
"""Writes curve.tfevents with the messages and the record writer of TensorBoard, for tensor_board_test.

Needs TensorBoard (pip install tensorboard).
"""
import pathlib

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def scalars(**values):
    return summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag.replace("__", "/"), simple_value=value)
                                      for tag, value in values.items()])


START = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
EVENTS = [
    event_pb2.Event(wall_time=100, file_version="brain.Event:2"),
    event_pb2.Event(wall_time=100, step=1, session_log=START),
    event_pb2.Event(wall_time=101.5, step=2, summary=scalars(training__loss=0.375, training__learning_rate=0.125,
                                                             training__samples_per_second=10)),
    event_pb2.Event(wall_time=102, step=2, summary=scalars(training__loss_between_evaluations=0.25,
                                                           validation__auc=0.75, validation__log_loss=0.5)),
    event_pb2.Event(wall_time=103, step=2, session_log=START),
    event_pb2.Event(wall_time=105, step=2, summary=scalars(training__loss=1.5, training__learning_rate=0.125)),
]

with open(pathlib.Path(__file__).with_name("curve.tfevents"), "wb") as file:
    writer = RecordWriter(file)
    for event in EVENTS:
        writer.write(event.SerializeToString())
