#!/usr/bin/env python3
"""Writes gpt.pt2, a small language model whose output layer is its embedding, and gpt.json: of a plain training loop the
loss of each step (cross-entropy of the last token, Adam), and the shared weight at the end; and tokens.pt2 and
tokens.json, the same with a label for each token, of which two in each sample have none (-100). Written with PyTorch 2.11;
run ../without_paths.py on the models afterwards.
"""
import json
import os

import torch
from torch import nn

SAMPLES, LENGTH, WORDS, WIDTH, STEPS, RATE = 12, 7, 11, 8, 20, 0.01
FOLDER = os.path.dirname(os.path.abspath(__file__))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        split = [t.view(t.shape[0], t.shape[1], 2, WIDTH // 2).transpose(1, 2) for t in (q, k, v)]
        y = nn.functional.scaled_dot_product_attention(*split, is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Gpt(nn.Module):
    def __init__(self, all_tokens):
        super().__init__()
        self.all_tokens = all_tokens
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x if self.all_tokens else x[:, -1])


def write(name, all_tokens):
    torch.manual_seed(12)
    model = Gpt(all_tokens).train()
    ids, labels = torch.randint(0, WORDS, (SAMPLES, LENGTH)), torch.randint(0, WORDS, (SAMPLES,))
    if all_tokens:
        labels = torch.randint(0, WORDS, (SAMPLES, LENGTH))
        for sample in labels:
            sample[torch.randperm(LENGTH)[:2]] = -100
    program = torch.export.export(model, (ids,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},))
    torch.export.save(program, os.path.join(FOLDER, name + ".pt2"))
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids).flatten(0, -2), labels.flatten())
        loss.backward()
        optimizer.step()
        losses.append(float(f"{loss.item():.9g}"))
    result = {"torch": torch.__version__.split("+")[0], "classes": WORDS, "labels": labels.flatten().tolist(), "rate": RATE,
              "inputs": [{"integers": True, "values": ids.flatten().tolist()}], "losses": losses,
              "weight": [float(f"{value:.9g}") for value in model.tokens.weight.flatten().tolist()]}
    with open(os.path.join(FOLDER, name + ".json"), "w", encoding="utf-8") as out:
        json.dump(result, out)
        out.write("\n")


def main():
    torch.set_num_threads(1)
    write("gpt", False)
    write("tokens", True)


if __name__ == "__main__":
    main()
