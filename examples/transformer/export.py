"""Exports the model of transformer.yaml: python export.py transformer.pt2 (PyTorch 2.9 or newer)."""
import sys

import torch
from torch import nn


class Tokens(nn.Module):
    """A sequence of 8 hashed words and 6 numbers; one logit."""

    def __init__(self, width=32, dropout=0.1):
        super().__init__()
        self.words = nn.Embedding(1024, width)
        self.places = nn.Parameter(torch.randn(8, width) / 10)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(width + 6, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, numbers, words):
        x = self.encoder(self.words(words) + self.places)
        return self.head(torch.cat([x.mean(1), numbers], 1))


if __name__ == "__main__":
    torch.manual_seed(1)
    batch = torch.export.Dim("batch", min=1)
    inputs = (torch.randn(4, 6), torch.randint(0, 1024, (4, 8)))
    program = torch.export.export(Tokens().train(), inputs, dynamic_shapes=({0: batch}, {0: batch}))
    torch.export.save(program, sys.argv[1])
