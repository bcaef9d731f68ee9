#!/usr/bin/env python3
"""Writes cells.txt: log-probabilities and gradients of both cells as PyTorch has them, for recurrent_policy_test.

Weights come from a formula that the test repeats. Needs torch (Debian: python3-torch); run it in this folder.
The policy is the one of scheduler-service/policy_net/policy_shape.h; PyTorch's own LSTM and RNN compute the cells.
"""
import math

import torch

FEATURES, ACTIONS, HIDDEN, STEPS, SAMPLES = 5, 3, 4, 6, 3
ENTROPY_WEIGHT = 0.3
WEIGHTS = [0.5, -1.25, 2.0]
ACTIONS_TAKEN = [[0, 1, 2, 2, 0, 1], [1, 1, 0, 2, 1, 1], [2, 0, 0, 0, 2, 0]]
FORBIDDEN = [(1, 2), (4, 2)]  # (step, action); samples that take one there are changed below


def value(i):
    return math.sin(1.0 + 0.7 * i) * 0.6


def block(numbers, rows, columns):  # column-major
    return torch.tensor([[next_value for next_value in numbers[r::rows]] for r in range(rows)],
                        dtype=torch.float64).reshape(rows, columns)


def run(kind):
    gates = 4 if kind == 'lstm' else 1
    sizes = [('wx', gates * HIDDEN, FEATURES), ('wa', gates * HIDDEN, ACTIONS), ('wh', gates * HIDDEN, HIDDEN),
             ('b', gates * HIDDEN, 1), ('wo', ACTIONS, HIDDEN), ('bo', ACTIONS, 1), ('ws', ACTIONS, ACTIONS)]
    blocks, at = {}, 0
    for name, rows, columns in sizes:
        blocks[name] = block([value(at + i) for i in range(rows * columns)], rows, columns).requires_grad_()
        at += rows * columns
    features = torch.tensor([[math.cos(0.3 * (t * FEATURES + f)) for f in range(FEATURES)] for t in range(STEPS)],
                            dtype=torch.float64)
    taken = [[0 if (t, a) in FORBIDDEN else a for t, a in enumerate(row)] for row in ACTIONS_TAKEN]
    inputs = torch.zeros(STEPS, SAMPLES, FEATURES + ACTIONS, dtype=torch.float64)
    for t in range(STEPS):
        for n in range(SAMPLES):
            inputs[t, n, :FEATURES] = features[t]
            if t > 0:
                inputs[t, n, FEATURES + taken[n][t - 1]] = 1
    weights = [torch.cat([blocks['wx'], blocks['wa']], 1), blocks['wh'], blocks['b'].reshape(-1),
               torch.zeros(gates * HIDDEN, dtype=torch.float64)]
    zero = torch.zeros(1, SAMPLES, HIDDEN, dtype=torch.float64)
    if kind == 'lstm':  # what nn.LSTM and nn.RNN call, here with weights that are not theirs
        hidden = torch._VF.lstm(inputs, (zero, zero), weights, True, 1, 0.0, False, False, False)[0]
    else:
        hidden = torch._VF.rnn_tanh(inputs, zero, weights, True, 1, 0.0, False, False, False)[0]
    logs = torch.zeros(SAMPLES, dtype=torch.float64)
    entropy = torch.zeros((), dtype=torch.float64)
    for t in range(STEPS):
        allowed = [a for a in range(ACTIONS) if (t, a) not in FORBIDDEN]
        for n in range(SAMPLES):
            logits = (blocks['wo'] @ hidden[t, n]) + blocks['bo'].reshape(-1)
            if t > 0:
                logits = logits + blocks['ws'][:, taken[n][t - 1]]
            log_p = torch.log_softmax(logits[allowed], 0)
            logs = logs + torch.nn.functional.one_hot(torch.tensor(n), SAMPLES) * log_p[allowed.index(taken[n][t])]
            entropy = entropy - (log_p.exp() * log_p).sum()
    (sum(w * l for w, l in zip(WEIGHTS, logs)) + ENTROPY_WEIGHT * entropy).backward()
    gradient = [x for name, _, _ in sizes for x in blocks[name].grad.t().reshape(-1).tolist()]
    return [f'{kind} log_probability ' + ' '.join(f'{x:.17g}' for x in logs.tolist()),
            f'{kind} entropy {entropy.item() / (STEPS * SAMPLES):.17g}',
            f'{kind} gradient ' + ' '.join(f'{x:.17g}' for x in gradient)]


if __name__ == '__main__':
    with open('cells.txt', 'w', encoding='utf-8') as out:
        out.write('# made by make_golden.py with torch ' + torch.__version__ + '\n')
        out.write('\n'.join(run('lstm') + run('elman')) + '\n')
