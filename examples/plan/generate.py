#!/usr/bin/env python3
"""Writes ctrdnn-16.yaml: the layer table of CTRDNN-16 with an ANALYTIC GUESS of its profile, not a measurement.

The widths are a reconstruction (HeterPS prints none). Seconds for a batch of B = 4096 samples on one unit:
  compute = 6 * weights * B / flops + traffic / memory_bandwidth + overhead   (forward, backward, update)
  sync    = 2 * 4 * weights / network          (dense: gradient out and in; embedding: touched rows only)
  transfer= 2 * output bytes * B / network
cpu: 20 GFLOP/s a core, 5 GB/s, 0.1 GB/s of network a core, 5 us a layer. v100: 4 TFLOP/s, 300 GB/s, 1 GB/s, 120 us a
layer (kernel launches); its embedding rows come over PCIe at 6 GB/s after a lookup on the host.
"""
B = 4096
FC = [(247, 512), (512, 512), (512, 256), (256, 256), (256, 256), (256, 256), (256, 128), (128, 128), (128, 128),
      (128, 128), (128, 64), (64, 2)]
TYPES = {'cpu': (20e9, 5e9, 0.1e9, 5e-6), 'v100': (4e12, 300e9, 1e9, 120e-6)}


def layers():
    yield 'embedding', 'EMBEDDING', 26 * 8, 26 * 9 * 4, 9000009, True
    yield 'pool', 'POOLING', 26 * 9 * 4, 26 * 9 * 4, 0, False
    yield 'concat', 'OTHER', 247 * 4, 247 * 4, 0, False
    for i, (a, b) in enumerate(FC):
        yield f'fc{i + 1}', 'FULLY_CONNECTED', a * 4, b * 4, a * b + b, False
    yield 'loss', 'LOSS', 8, 4, 0, False


def profile(kind, inp, out, weights, t):
    flops, memory, network, overhead = TYPES[t]
    sparse = kind == 'EMBEDDING'
    work = 0 if sparse else 6 * weights * B / flops
    traffic = (inp + out) * B * (6 if sparse else 3)
    compute = work + traffic / (6e9 if sparse and t == 'v100' else memory) + overhead
    if sparse and t == 'v100':
        compute += 26 * B * 60e-9  # the lookup on the host
    sync = (2 * out * B if sparse else 8 * weights) / network
    server = 26 * B * 50e-9 if sparse else 0
    return (f'{{resourceType: {t}, computeSeconds: {compute:.6g}, computeParallel: {0.99 if t == "cpu" else 0.95}, '
            f'syncSeconds: {sync:.6g}, transferSeconds: {2 * out * B / network:.6g}, commParallel: 0.9, '
            f'serverSeconds: {server:.6g}, origin: analytic}}')


print('# CTRDNN with 16 layers on CPU cores and V100s. The profile is an ANALYTIC GUESS (generate.py), not measured;')
print('# the layer widths are a reconstruction.')
print('model:\n  name: ctrdnn-16\n  layers:')
for name, kind, inp, out, weights, sparse in layers():
    print(f'    - name: {name}\n      kind: {kind}\n      inputBytes: {inp}\n      outputBytes: {out}\n'
          f'      weightBytes: {weights * 4}' + ('\n      sparse: true' if sparse else '') + '\n      profiles:')
    for t in TYPES:
        print('        - ' + profile(kind, inp, out, weights, t))
print(f'''training: {{profileBatchSize: {B}, samplesPerEpoch: 45000000, epochs: 1, stateFactor: 3, microBatches: 4}}
constraints: {{minThroughput: 500000}}
resources:
  - {{name: cpu,  class: CPU, pricePerUnitHour: 0.04, limit: 480}}
  - {{name: v100, class: GPU, pricePerUnitHour: 2.42, limit: 32, memoryBytes: 17179869184}}
serverType: cpu
planner: {{name: exact, seed: 1, timeBudgetSeconds: 10}}''')
