#!/usr/bin/env python3
"""Writes the graphs of HeteroG's evaluation: operations with their FLOPs, bytes and parameters, for any batch.

  export.py [--medley build/bin/medley] [--folder examples/graphs] [NAME...]

Needs PyTorch 2.9, torchvision, timm and transformers, and the program medley. Weights are random: only their sizes matter. The
paper gives neither image sizes nor sequence lengths; SIZES below fixes both, and was written before any planner ran on the graphs.
"""
import argparse
import gzip
import os
import subprocess
import sys
import tempfile

import torch
from torch import nn

# Square images in pixels, or tokens of a sequence. Where a model has a usual size it is that one, but for NASNet-A large: 24 of its usual
# images of 331 pixels, which the paper has on each GPU, would not fit into 11 GB. 128 tokens is what BERT's authors train nine tenths
# of their steps with.
SIZES = {"vgg19": 224, "resnet200": 224, "inception_v3": 299, "mobilenet_v2": 224, "nasnet": 224, "transformer-6": 64,
         "transformer-24": 64, "bert-24": 128, "bert-48": 128, "xlnet-24": 128, "xlnet-48": 128}
WORDS = {"transformer": 32000, "bert": 30522, "xlnet": 32000}
EXAMPLES = 2


class Language(nn.Module):
    """Predicts a word at each position: a model of hidden states, and the product with the words."""

    def __init__(self, body, width, words):
        super().__init__()
        self.body = body
        self.words = nn.Linear(width, words)

    def forward(self, tokens):
        return self.words(self.body(tokens))


class Hidden(nn.Module):
    """Of a model of transformers, the last hidden states."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(tokens).last_hidden_state


class Encoder(nn.Module):
    """The encoder of "Attention is all you need", base size."""

    def __init__(self, layers, words, width=512):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 8, 2048, 0.1, batch_first=True) for _ in range(layers))

    def forward(self, tokens):
        hidden = self.embed(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


class XlnetLayer(nn.Module):
    """A layer of XLNet-large: attention with relative positions, whose shifted products are a second product of the queries."""

    def __init__(self, width=1024, heads=16, inner=4096):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.position, self.out = (nn.Linear(width, width) for _ in range(5))
        self.first, self.second = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm, self.norm_inner = nn.LayerNorm(width), nn.LayerNorm(width)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def forward(self, hidden, positions):
        query, key, value = self.split(self.query(hidden)), self.split(self.key(hidden)), self.split(self.value(hidden))
        relative = self.split(self.position(positions))
        scores = torch.matmul(query, key.transpose(2, 3)) + torch.matmul(query, relative.transpose(2, 3))
        mixed = torch.matmul(torch.softmax(scores * 0.125, -1), value).transpose(1, 2).flatten(2)
        hidden = self.norm(hidden + self.out(mixed))
        return self.norm_inner(hidden + self.second(nn.functional.gelu(self.first(hidden))))


class Xlnet(nn.Module):
    """XLNet-large without recurrence over segments, which one step does not have. That of transformers shifts by views that depend on
    strides, which torch.export does not follow for any batch."""

    def __init__(self, layers, words, tokens, width=1024):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(1, tokens, width))
        self.layers = nn.ModuleList(XlnetLayer(width) for _ in range(layers))

    def forward(self, tokens):
        hidden = self.embed(tokens)
        positions = self.places.expand(hidden.size(0), -1, -1)
        for layer in self.layers:
            hidden = layer(hidden, positions)
        return hidden


def make(name):
    size = SIZES[name]
    images = torch.randn(EXAMPLES, 3, size, size)
    kind, _, layers = name.partition("-")
    if kind in WORDS:
        tokens = torch.randint(0, WORDS[kind], (EXAMPLES, size))
        if kind == "transformer":
            return Language(Encoder(int(layers), WORDS[kind]), 512, WORDS[kind]), tokens
        if kind == "xlnet":
            return Language(Xlnet(int(layers), WORDS[kind], size), 1024, WORDS[kind]), tokens
        import transformers
        config = transformers.BertConfig(hidden_size=1024, num_hidden_layers=int(layers), num_attention_heads=16,
                                         intermediate_size=4096, attn_implementation="eager")
        return Language(Hidden(transformers.BertModel(config, add_pooling_layer=False)), 1024, WORDS[kind]), tokens
    if name in ("resnet200", "nasnet"):
        import timm
        return timm.create_model({"nasnet": "nasnetalarge"}.get(name, name), num_classes=1000), images
    import torchvision
    more = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    relu = nn.functional.relu
    nn.functional.relu = lambda x, inplace=False: relu(x)  # as for modules, below
    return torchvision.models.get_model(name, **more), images


def export(name, medley, folder):
    torch.manual_seed(0)
    model, batch = make(name)
    for module in model.modules():
        if hasattr(module, "inplace"):
            module.inplace = False  # operations that write into another's result cannot be divided from it
    with tempfile.TemporaryDirectory() as place:
        archive, table = os.path.join(place, name + ".pt2"), os.path.join(place, name + ".yaml")
        program = torch.export.export(model.train(), (batch,), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=4096)},))
        torch.export.save(program, archive)
        subprocess.run([medley, "model", "inspect", archive, "--finest", "--table", table], check=True, stdout=subprocess.DEVNULL)
        with open(table, "rb") as file, gzip.GzipFile(os.path.join(folder, name + ".yaml.gz"), "wb", 9, mtime=0) as out:
            out.write(file.read())
    print(name, sum(p.numel() for p in model.parameters()), "parameters", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--medley", default="build/bin/medley")
    parser.add_argument("--folder", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("names", nargs="*", metavar="NAME", default=[])
    arguments = parser.parse_args()
    failed = []
    for name in arguments.names or SIZES:
        try:
            export(name, arguments.medley, arguments.folder)
        except Exception as error:  # the others are still wanted
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
