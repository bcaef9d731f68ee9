"""Does memory grow with the steps? 500 steps in one process: what it holds of the host and of the GPU, from step 100 on."""
import json
import os

import kit
import zoo

STEPS = 500
MODELS = ("lenet", "transformer", "two-tower")
BAR = 8  # MiB in 400 steps


def main():
    models = zoo.models(kit.ON_GPU)
    for name in MODELS:
        folder = os.path.join(kit.SCRATCH, name)
        os.makedirs(folder)
        zoo.export(models[name], folder)
        spec = zoo.write_spec(models[name], folder)
        code, out, err = kit.call([kit.program("exported_bench"), spec, "--device", kit.DEVICE, "--steps", str(STEPS)])
        if code != 0:
            kit.row(f"{name}: {STEPS} steps", kit.last_line(err), holds=False)
            continue
        held = json.loads(out)["memory"]
        first, last = next(at for at in held if at["step"] >= STEPS // 5), held[-1]
        for place, words in (("host", "the host's memory"), ("device", "the GPU's memory")):
            if place not in last:
                continue
            grown = (last[place] - first[place]) / 2**20
            kit.row(f"{name}: growth of {words}, steps {first['step']} to {last['step']}", round(grown, 2), "MiB", f"<= {BAR}",
                    grown <= BAR)
        if kit.ON_GPU and "device" not in last:
            kit.row(f"{name}: the GPU's memory", "not in the output", holds=False)


if __name__ == "__main__":
    main()
