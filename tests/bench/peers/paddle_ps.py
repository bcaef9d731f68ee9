"""A CTR-DNN on Paddle's parameter servers, a peer of `./dev bench train`: build/wheels-peers/paddle/bin/python3 runs it.

  paddle_ps.py --data FILE --cache FILE.npz [--set criteo|ctrdnn1] [--batch 512] [--seconds 6] [--trainers 2] [--servers 1] [--threads 1]

The model and the samples are those of torch_ctrdnn.py. As Paddle's guide to parameter servers and PaddleRec have it: fleet in its
asynchronous mode, a sparse_embedding, Adam (for rows the servers' SparseAdamSGDRule, which updates the rows that a batch has), and
train_from_dataset over an InMemoryDataset, whose threads are not Python's. Prints a line of JSON.
"""
import argparse
import json
import os
import tempfile
import time

import role_processes
from criteo_shape import SETS, load


def write_slots(path, ids, numbers, labels):
    """The text that Paddle's data feeds read: before each list of values their count."""
    with open(path, "w", encoding="ascii") as file:
        for keys, values, label in zip(ids.tolist(), numbers.tolist(), labels.tolist()):
            file.write(f"{len(keys)} {' '.join(map(str, keys))} {len(values)} {' '.join(f'{x:.6g}' for x in values)} 1 {label:g}\n")


def environment_of(options, ports):
    """What fleet reads of a process with this role."""
    at = [f"127.0.0.1:{port}" for port in ports]
    servers, trainers = at[:options.servers], at[options.servers:]

    def of(role, index):
        mine = (servers if role == "server" else trainers)[index]
        return {**os.environ, "TRAINING_ROLE": "PSERVER" if role == "server" else "TRAINER", "POD_IP": "127.0.0.1",
                "PADDLE_PORT": mine.split(":")[1], "PADDLE_CURRENT_ENDPOINT": mine, "PADDLE_TRAINER_ID": str(index),
                "PADDLE_TRAINERS_NUM": str(options.trainers), "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(servers),
                "PADDLE_TRAINER_ENDPOINTS": ",".join(trainers), "GLOG_minloglevel": "2"}
    return of


def model(paddle, shape, fields, numerics):
    """(loss, inputs)"""
    ids = paddle.static.data("ids", [None, fields], "int64")
    numbers = paddle.static.data("numbers", [None, numerics], "float32")
    labels = paddle.static.data("labels", [None, 1], "float32")
    uniform = paddle.nn.initializer.Uniform(-0.05, 0.05)
    rows = paddle.static.nn.sparse_embedding(paddle.reshape(ids, [-1, 1]), size=[shape["rows"], shape["dim"]],
                                             param_attr=paddle.ParamAttr(name="table", initializer=uniform))
    x = paddle.concat([paddle.reshape(rows, [-1, fields * shape["dim"]]), numbers], axis=1)
    for width in shape["hidden"]:
        x = paddle.static.nn.fc(x, width, activation="relu")
    x = paddle.static.nn.fc(x, 1)
    return paddle.mean(paddle.nn.functional.binary_cross_entropy_with_logits(x, labels)), [ids, numbers, labels]


def run_role(options):
    import paddle
    from paddle.distributed import fleet
    paddle.enable_static()
    paddle.seed(1)
    role, index = options.role.split("-")
    index = int(index)
    shape = SETS[options.set]
    fleet.init(is_collective=False)
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    loss, inputs = model(paddle, shape, len(shape["categorical"]), len(shape["numeric"]))
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.001), strategy).minimize(loss)
    if role == "server":
        fleet.init_server()
        fleet.run_server()
        return
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()
    with tempfile.TemporaryDirectory(prefix="medley-paddle-") as folder:
        share = [x[index::options.trainers] for x in load(options, shape)]
        samples = len(share[2]) // options.batch * options.batch
        files = [os.path.join(folder, f"part-{part}") for part in range(options.threads)]
        for part, path in enumerate(files):
            write_slots(path, *(x[part:samples:options.threads] for x in share))
        data = paddle.distributed.InMemoryDataset()
        data.init(batch_size=options.batch, thread_num=options.threads, pipe_command="cat", use_var=inputs)
        data.set_filelist(files)
        data.load_into_memory()

    def run(seconds):
        """Passes through all samples: one to warm up."""
        begin, done = time.perf_counter(), 0
        while done == 0 or (seconds is not None and time.perf_counter() - begin < seconds):
            executor.train_from_dataset(paddle.static.default_main_program(), data, thread=options.threads)
            done += samples
        return done, done // options.batch

    def loss_of():
        feed = {"ids": share[0][:options.batch], "numbers": share[1][:options.batch], "labels": share[2][:options.batch, None]}
        return float(executor.run(paddle.static.default_main_program(), feed=feed, fetch_list=[loss])[0])

    role_processes.train(options.seconds, run, loss_of)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=sorted(SETS), default="criteo")
    parser.add_argument("--data", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of a trainer")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        run_role(options)
        return
    load(options, SETS[options.set])  # fills the cache
    ports = role_processes.free_ports(options.servers + options.trainers)
    options.data, options.cache = os.path.abspath(options.data), os.path.abspath(options.cache)
    arguments = [os.path.abspath(__file__), *(f"--{name}={getattr(options, name)}" for name in (
        "set", "data", "cache", "batch", "seconds", "trainers", "servers", "threads"))]
    with tempfile.TemporaryDirectory(prefix="medley-paddle-") as scratch:
        os.chdir(scratch)  # Paddle writes descriptions of what it trains
        print(json.dumps(role_processes.measure(options.servers, options.trainers, environment_of(options, ports), arguments)))


if __name__ == "__main__":
    main()
