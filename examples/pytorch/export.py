"""Exports the model of examples/pytorch.yaml: python export.py ../data/adult.pt2 (PyTorch 2.9 or newer)."""
import sys

import torch
from torch import nn


class Adult(nn.Module):
    """For 6 numbers and 8 categorical values, hashed into 512 rows; one logit."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(512, 8)
        self.first = nn.Linear(6 + 8 * 8, 128)
        self.norm = nn.LayerNorm(128)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.1)) for _ in range(3))
        self.head = nn.Linear(128, 1)

    def forward(self, numbers, categories):
        x = torch.cat([numbers, self.embedding(categories).flatten(1)], 1)
        x = torch.relu(self.norm(self.first(x)))
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


torch.manual_seed(1)
batch = torch.export.Dim("batch", min=1)
inputs = (torch.randn(4, 6), torch.randint(0, 512, (4, 8)))
torch.export.save(torch.export.export(Adult().train(), inputs, dynamic_shapes=({0: batch}, {0: batch})), sys.argv[1])
