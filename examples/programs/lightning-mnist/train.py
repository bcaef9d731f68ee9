"""Trains a small network on MNIST with a LightningModule and Lightning's Trainer, on CPUs. Knows nothing of Medley:

  torchrun --nproc_per_node 2 train.py --data ../../lenet --checkpoints /tmp/lightning

Saves at SIGUSR1, every 100 steps and at the end, and continues from the newest checkpoint, on any number of processes: they
share a batch.
"""
import argparse
import gzip
import os
import signal
import warnings

import lightning
import numpy
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--checkpoints", required=True)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=512)
args = parser.parse_args()
rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
warnings.filterwarnings("ignore", message=".*does not have many workers.*")
newest = os.path.join(args.checkpoints, "newest.ckpt")


def read(name, header):
    with gzip.open(os.path.join(args.data, name)) as file:
        return numpy.frombuffer(file.read(), dtype=numpy.uint8, offset=header)


def images(name):
    return torch.from_numpy(read(name, 16).reshape(-1, 784).copy())


def labels(name):
    return torch.from_numpy(read(name, 8).astype(numpy.int64))


class Batches(torch.utils.data.IterableDataset):
    """This process's part of each batch after step `done`: the same samples on any number of processes."""

    def __init__(self, done):
        super().__init__()
        self.done = done

    def __iter__(self):
        x, y = images("train-images-idx3-ubyte.gz"), labels("train-labels-idx1-ubyte.gz")
        for step in range(self.done, args.steps):
            epoch, at = divmod(step, len(x) // args.batch)
            order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
            mine = order[at * args.batch:(at + 1) * args.batch][rank::world]
            yield x[mine] / 255, y[mine]


class Network(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512),
                                          torch.nn.ReLU(), torch.nn.Linear(512, 10))

    def training_step(self, batch, _):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.layers(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


class Progress(lightning.Callback):
    """Says each step, and saves when it is asked to."""

    def __init__(self):
        self.wanted = False
        signal.signal(signal.SIGUSR1, self.want)

    def want(self, *_):
        self.wanted = True

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        step = trainer.global_step
        if trainer.is_global_zero:
            print(f"step {step} loss {outputs['loss'].item():.4f}", flush=True)
        # All processes take part in a save, and the signal may come to one of them earlier than to another.
        wanted = trainer.strategy.reduce_boolean_decision(self.wanted, all=False)
        if wanted or step % 100 == 0 or step == args.steps:
            self.wanted = False
            trainer.save_checkpoint(newest + ".tmp")
            if trainer.is_global_zero:
                os.replace(newest + ".tmp", newest)


# Lightning's own handler lets a process wait for the others, which are stopped as well.
signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
done = 0
if os.path.exists(newest):
    done = torch.load(newest, weights_only=False, mmap=True)["global_step"]
    if rank == 0:
        print(f"continues after step {done} on {world} processes", flush=True)
lightning.seed_everything(1, verbose=False)
network = Network()
trainer = lightning.Trainer(accelerator="cpu", devices=local, num_nodes=world // local, strategy="ddp", max_steps=args.steps,
                            max_epochs=-1, callbacks=[Progress()], logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, default_root_dir=args.checkpoints)
trainer.fit(network, torch.utils.data.DataLoader(Batches(done), batch_size=None), ckpt_path=newest if done else None)

if trainer.is_global_zero:
    with torch.no_grad():
        right = network.layers(images("t10k-images-idx3-ubyte.gz") / 255).argmax(1) == labels("t10k-labels-idx1-ubyte.gz")
    print(f"test accuracy {right.float().mean().item():.4f}", flush=True)
