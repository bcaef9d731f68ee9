#!/usr/bin/python3
"""Runs all parts of agent_bench, and keeps what each printed: ./dev bench agent all [--folder build/agent-bench] [--small]

As graph/all.py does it for graph_bench.
"""
import importlib.util
import os

HERE = os.path.dirname(os.path.abspath(__file__))
GRAPH = os.path.join(HERE, "graph/all.py")
PARTS = {  # name: arguments, and those of --small
    "search": ("agent_bench search --calls 1000 --seeds 5", "agent_bench search --calls 60 --seeds 1 --models vgg19"),
    "train": ("agent_bench train --without vgg19,bert-24,inception_v3 --weights {folder}/unseen.pt",
              "agent_bench train --models resnet200 --rounds 2 --weights {folder}/unseen.small.pt"),
    "unseen": ("agent_bench unseen --calls 2000 --seeds 3 --models vgg19,inception_v3,bert-24 --weights {folder}/unseen.pt",
               "agent_bench unseen --calls 60 --seeds 1 --models vgg19 --weights {folder}/unseen.small.pt"),
}


def main():
    spec = importlib.util.spec_from_file_location("graph_all", GRAPH)
    graph = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(graph)
    graph.main(PARTS, "build/agent-bench")


if __name__ == "__main__":
    main()
