// What a layer does with one sample, from its kind and attributes: operations, bytes moved, kernels started.
//
// Pure. Attributes by kind (numbers as decimal text; `dtypeBytes` everywhere, default 4):
//   EMBEDDING        rows, dim, fields (ids a sample), sequence (ids a field, default 1), distinctShare (rows that a
//                    batch really touches over those of evenly drawn ids; default 1, an upper bound)
//   FULLY_CONNECTED  width (numbers in), units
//   CONVOLUTION      units (channels out), height and width (of the input), channels, kernelHeight, kernelWidth
//   RECURRENT        sequence, width, units, cell (gru, lstm, rnn)
//   ATTENTION        sequence, units
//   OTHER            op (match or dot: rows, columns, width; concat: optional `cosine`, its length)
// POOLING, NORMALIZATION, ACTIVATION, LOSS and unknown kinds are counted by their bytes. Where attributes that only
// size the weights are absent, weightBytes stands in for them.
#pragma once

#include <absl/status/statusor.h>

#include "common/model/model.h"

namespace medley::sched {

// Per sample unless said. A table's rows are counted in `gathered_bytes`, not in `forward_flops`.
struct LayerWork {
  double parameters = 0;      // of the layer
  double dtype_bytes = 4;     // of one parameter
  double forward_flops = 0;   // a multiplication and an addition are two
  double forward_bytes = 0;   // activations read and written
  double gathered_bytes = 0;  // rows of a table that a sample touches; at least one access each
  double gathered_rows = 0;
  double distinct_share = 1;     // see above
  double scalar_operations = 0;  // exponentials and logarithms, forward and backward together, as single operations
  double backward_factor = 1;    // backward flops and bytes over forward ones: 2 with weights, 1 without
  // Kernels that a step starts however small the batch; `sequential` multiplies the first two.
  double forward_launches = 1;
  double backward_launches = 1;
  double update_launches = 0;
  double sequential = 1;  // steps that cannot run at the same time (a recurrence)
};

// Errors: InvalidArgument naming the attribute that is missing or not a number above 0.
absl::StatusOr<LayerWork> WorkOf(const model::Layer& layer);

}  // namespace medley::sched
