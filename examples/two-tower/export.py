"""Exports the model of two-tower.yaml: python export.py two-tower.pt2 (PyTorch 2.9 or newer)."""
import sys

import torch
from torch import nn


class TwoTower(nn.Module):
    """A person and a job, each by its own tower; the logit is their scalar product.

    sparse=True: a step reads and updates only the rows that it uses, on parameter servers where a plan has them.
    """

    def __init__(self, width=32):
        super().__init__()
        self.traits = nn.Embedding(512, 8, sparse=True)
        self.person = nn.Sequential(nn.Linear(4 + 4 * 8, 64), nn.ReLU(), nn.Linear(64, width))
        self.trades = nn.EmbeddingBag(512, 16, mode="sum", sparse=True)
        self.job = nn.Sequential(nn.Linear(2 + 16, 64), nn.ReLU(), nn.Linear(64, width))

    def forward(self, numbers, traits, terms, trades):
        person = self.person(torch.cat([numbers, self.traits(traits).flatten(1)], 1))
        job = self.job(torch.cat([terms, self.trades(trades)], 1))
        return (person * job).sum(1, keepdim=True)


if __name__ == "__main__":
    torch.manual_seed(1)
    batch = torch.export.Dim("batch", min=1)
    inputs = (torch.randn(4, 4), torch.randint(0, 512, (4, 4)), torch.randn(4, 2), torch.randint(0, 512, (4, 4)))
    program = torch.export.export(TwoTower().train(), inputs, dynamic_shapes=tuple({0: batch} for _ in inputs))
    torch.export.save(program, sys.argv[1])
