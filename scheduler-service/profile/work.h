// Computes the work of a layer for one sample from its kind and attributes: operations, bytes moved, kernels launched.
//
// Pure. Attributes by kind (numbers as decimal text; all kinds have `dtypeBytes`, default 4):
//   EMBEDDING        rows, dim, fields (ids per sample), sequence (ids per field, default 1), distinctShare (distinct
//                    rows in a batch, relative to those of uniformly drawn ids; default 1, an upper bound)
//   FULLY_CONNECTED  width (number of inputs), units
//   CONVOLUTION      units (output channels), height and width (of the input), channels, kernelHeight, kernelWidth
//   RECURRENT        sequence, width, units, cell (gru, lstm, rnn)
//   ATTENTION        sequence, units
//   OTHER            op (match or dot: rows, columns, width; concat: optional `cosine`, its length)
// All kinds but EMBEDDING may have `flops` instead (of the forward pass of a sample, as `medley model inspect` counts
// them), with `calls` (default 2) and `activationBytes` (of a sample, all results of its calls).
// The work of POOLING, NORMALIZATION, ACTIVATION, LOSS and unknown kinds is estimated from their bytes. If attributes
// that only determine the size of the weights are missing, weightBytes is used instead.
#pragma once

#include <absl/status/statusor.h>

#include "common/model/forward.h"

namespace medley::sched {

// Per sample unless stated otherwise. Access to a table's rows is in `gathered_bytes`, not in `forward_flops`.
struct LayerWork {
  double parameters = 0;        // number of parameters of the layer
  double dtype_bytes = 4;       // bytes per parameter
  double forward_flops = 0;     // a multiplication and an addition count as two
  double forward_bytes = 0;     // activations read and written
  double activation_bytes = 0;  // kept from the forward to the backward pass; 0: the output
  double gathered_bytes = 0;    // bytes of the table rows that a sample uses
  double gathered_rows = 0;
  double distinct_share = 1;     // the attribute distinctShare
  double scalar_operations = 0;  // operations for exponentials and logarithms, forward and backward
  double backward_factor = 1;    // backward relative to forward flops and bytes: 2 with weights, 1 without
  // Kernels launched per step, independent of the batch size; `sequential` multiplies the first two.
  double forward_launches = 1;
  double backward_launches = 1;
  double update_launches = 0;
  double sequential = 1;  // number of sequential steps in a recurrence
};

// Errors: InvalidArgument naming an attribute that is missing or not a number greater than 0.
absl::StatusOr<LayerWork> WorkOf(const model::Layer& layer);

}  // namespace medley::sched
