#!/usr/bin/env python3
"""Exports the three models of TAPP (Mao and others 2021) with torch.export: AlexNet, VGG-16, Inception-V3.

  export.py FOLDER [MODEL...]     writes FOLDER/MODEL.pt2; needs PyTorch 2.7 or newer with torchvision

Then `medley model inspect FOLDER/alexnet.pt2 --depth 2 --table alexnet.yaml` writes the layer tables beside this file,
which planners read (docs/papers/tapp.md). The paper trains on CIFAR-10, whose images have 32 x 32 pixels, but its models
have the sizes of their ImageNet versions (AlexNet 240 MB, VGG-16 550 MB), which only larger images give. It does not say
how it feeds them. Here images are scaled to the size that each model was made for, and the last layer has 10 classes.
Weights are zeros: planners read shapes only.
"""
import sys

import torch
import torchvision

# Model, pixels, batch in the paper, and the depth of module paths at which it is cut.
MODELS = {
    "alexnet": (torchvision.models.alexnet, 224, 128, 2),
    "vgg16": (torchvision.models.vgg16, 224, 64, 2),
    "inception_v3": (lambda **options: torchvision.models.inception_v3(aux_logits=False, init_weights=False, **options),
                     299, 128, 1),
}


def export(name, path):
    make, pixels, _, _ = MODELS[name]
    model = make(num_classes=10)
    for module in model.modules():
        if hasattr(module, "inplace"):
            module.inplace = False  # layers that change another's output in place would be one operation with it
    with torch.no_grad():
        for values in model.parameters():
            values.zero_()
    batch = torch.export.Dim("batch", min=2, max=1 << 16)
    image = torch.zeros(4, 3, pixels, pixels)
    program = torch.export.export(model.train(), (image,), dynamic_shapes=({0: batch},))
    torch.export.save(program, path)


def main():
    folder = sys.argv[1]
    for name in sys.argv[2:] or MODELS:
        export(name, f"{folder}/{name}.pt2")
        print(f"{folder}/{name}.pt2")


if __name__ == "__main__":
    main()
