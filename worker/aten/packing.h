// Tensors that pass between blocks, as rows of floats: one row a sample.
#pragma once

#include <absl/status/status.h>

#include <span>
#include <vector>

#include "worker/aten/torch.h"
#include "worker/cut/cut.h"
#include "worker/data/batch.h"
#include "worker/data/inputs.h"
#include "worker/model/block_shape.h"
#include "worker/pipeline/block_compute.h"

namespace medley::worker::aten {

// A tensor of a crossing with the sizes `sizes`, whose samples are `floats` numbers from `first` on in each row of
// `rows`, which are `width` wide. It may refer to `rows`, which must outlive it, and must not be written.
at::Tensor Unpack(const cut::Crossing& crossing, const std::vector<int64_t>& sizes, int64_t samples,
                  std::span<const float> rows, int64_t first, int64_t width);

// Writes a tensor (undefined: zeros) into the rows. Its type and memory format may be any.
void Pack(const cut::Crossing& crossing, const at::Tensor& tensor, int64_t samples, std::span<float> rows,
          int64_t first, int64_t width);

// The floats of a tensor that is its rows already; empty if it must be packed.
std::span<const float> AsRows(const cut::Crossing& crossing, const at::Tensor& tensor, int64_t samples);

// Whether a block can compute these samples. Errors: InvalidArgument for a number of samples that the model does not
// take, and for inputs of other sizes.
absl::Status CheckSizes(const cut::Cut& cut, const worker::BlockShape& shape, const worker::BatchView& features,
                        worker::Values inputs);

// An input of the model from the samples of a batch, contiguous, with memory of its own unless the batch has it so.
at::Tensor FromBatchRows(const worker::BatchView& batch, const worker::InputSlice& slice, at::ScalarType type);

}  // namespace medley::worker::aten
