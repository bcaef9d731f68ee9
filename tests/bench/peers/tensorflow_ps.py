"""A CTR-DNN on TensorFlow's parameter servers, a peer of `./dev bench train`: build/wheels-peers/tensorflow/bin/python3 runs it.

  tensorflow_ps.py --data FILE --cache FILE.npz [--set criteo|ctrdnn1] [--batch 512] [--seconds 6] [--trainers 2] [--servers 1]
                   [--optimizer adagrad|adam] [--threads 1]

The model and the samples are those of torch_ctrdnn.py. Between-graph replication with replica_device_setter, as TensorFlow's guide to
distributed training describes it: trainers run on their own, asynchronously, and read and update the variables of the servers. Each
trainer looks up the distinct keys of its batch. Adagrad updates the rows that a batch has (sparse_apply_adagrad); Adam (tf.compat.v1)
decays the moments of the whole table in each step, which is its dense path. Prints a line of JSON.
"""
import argparse
import json
import os
import time

import numpy

import role_processes
from criteo_shape import SETS, load


def cluster_of(options):
    ports = options.ports.split(",")
    at = [f"127.0.0.1:{port}" for port in ports]
    return {"ps": at[:options.servers], "worker": at[options.servers:]}


def configuration(tf, options, filters):
    return tf.compat.v1.ConfigProto(intra_op_parallelism_threads=options.threads, inter_op_parallelism_threads=options.between,
                                    device_filters=filters)


def model(tf, options, shape, fields, numerics):
    """(loss, training operation, the three placeholders)"""
    v1 = tf.compat.v1
    ids = v1.placeholder(tf.int64, [None, fields])
    numbers = v1.placeholder(tf.float32, [None, numerics])
    labels = v1.placeholder(tf.float32, [None])
    table = v1.get_variable("table", [shape["rows"], shape["dim"]], initializer=v1.random_uniform_initializer(-0.05, 0.05),
                            use_resource=True)
    keys, where = tf.unique(tf.reshape(ids, [-1]))
    rows = tf.gather(tf.nn.embedding_lookup(table, keys), where)
    x = tf.concat([tf.reshape(rows, [-1, fields * shape["dim"]]), numbers], 1)
    widths = (fields * shape["dim"] + numerics, *shape["hidden"], 1)
    for layer, (before, after) in enumerate(zip(widths, widths[1:])):
        weights = v1.get_variable(f"weights{layer}", [before, after], initializer=v1.glorot_uniform_initializer(), use_resource=True)
        bias = v1.get_variable(f"bias{layer}", [after], initializer=v1.zeros_initializer(), use_resource=True)
        x = tf.nn.bias_add(tf.matmul(x, weights), bias)
        if layer < len(widths) - 2:
            x = tf.nn.relu(x)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=tf.squeeze(x, 1)))
    optimizer = v1.train.AdagradOptimizer(0.05) if options.optimizer == "adagrad" else v1.train.AdamOptimizer(0.001)
    return loss, optimizer.minimize(loss), (ids, numbers, labels)


def run_role(options):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    role, index = options.role.split("-")
    index = int(index)
    cluster = v1.train.ClusterSpec(cluster_of(options))
    if role == "server":
        v1.train.Server(cluster, "ps", index, config=configuration(tf, options, None)).join()
        return
    task = f"/job:worker/task:{index}"
    config = configuration(tf, options, ["/job:ps", task])
    server = v1.train.Server(cluster, "worker", index, config=config)
    shape = SETS[options.set]
    ids, numbers, labels = (numpy.ascontiguousarray(x[index::options.trainers]) for x in load(options, shape))
    v1.set_random_seed(1)
    with v1.device(v1.train.replica_device_setter(cluster=cluster, worker_device=task)):
        loss, step, holders = model(tf, options, shape, ids.shape[1], numbers.shape[1])
        initialize, missing = v1.global_variables_initializer(), v1.report_uninitialized_variables()
    session = v1.Session(server.target, config=config)
    if index == 0:
        session.run(initialize)
    while len(session.run(missing)) > 0:  # the first trainer initialises them
        time.sleep(0.2)
    run_step = session.make_callable([loss, step], feed_list=list(holders))
    batches = len(labels) // options.batch
    losses = []

    def run(seconds):
        steps, now = 0, 0.0
        begin = time.perf_counter()
        while steps < role_processes.WARM_UP if seconds is None else now < seconds:
            at = steps % batches * options.batch
            end = at + options.batch
            losses.append(run_step(ids[at:end], numbers[at:end], labels[at:end])[0])
            steps += 1
            now = time.perf_counter() - begin
        return steps * options.batch, steps

    role_processes.train(options.seconds, run, lambda: float(losses[-1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=sorted(SETS), default="criteo")
    parser.add_argument("--data", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--optimizer", choices=["adagrad", "adam"], default="adagrad")
    parser.add_argument("--threads", type=int, default=1, help="of an operation")
    parser.add_argument("--between", type=int, default=2, help="threads for operations that run at a time")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--ports", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        run_role(options)
        return
    load(options, SETS[options.set])  # fills the cache
    ports = ",".join(map(str, role_processes.free_ports(options.servers + options.trainers)))
    arguments = [os.path.abspath(__file__), *(f"--{name}={getattr(options, name)}" for name in (
        "set", "data", "cache", "batch", "seconds", "trainers", "servers", "optimizer", "threads", "between")), f"--ports={ports}"]
    print(json.dumps(role_processes.measure(options.servers, options.trainers, lambda role, index: dict(os.environ), arguments)))


if __name__ == "__main__":
    main()
