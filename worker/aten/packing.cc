#include "worker/aten/packing.h"

#include "common/base/status.h"
#include "worker/aten/conversions.h"

namespace medley::worker::aten {

at::Tensor Unpack(const cut::Crossing& crossing, const std::vector<int64_t>& sizes, int64_t samples,
                  std::span<const float> rows, int64_t first, int64_t width) {
  std::vector<int64_t> moved = sizes;
  moved.erase(moved.begin() + crossing.axis);
  moved.insert(moved.begin(), sizes[static_cast<size_t>(crossing.axis)]);
  // LibTorch has no tensors over constant memory; nobody writes to this one.
  at::Tensor tensor = at::from_blob(const_cast<float*>(rows.data()) + first, {samples, crossing.floats}, {width, 1},
                                    at::TensorOptions().dtype(at::kFloat))
                          .reshape(moved);
  if (crossing.axis > 0) tensor = tensor.movedim(0, crossing.axis);
  return tensor.to(TypeOf(crossing.type));
}

void Pack(const cut::Crossing& crossing, const at::Tensor& tensor, int64_t samples, std::span<float> rows,
          int64_t first, int64_t width) {
  const at::Tensor to =
      at::from_blob(rows.data() + first, {samples, crossing.floats}, {width, 1}, at::TensorOptions().dtype(at::kFloat));
  if (!tensor.defined()) {
    to.zero_();
    return;
  }
  to.copy_(at::detach(tensor).movedim(crossing.axis, 0).reshape({samples, crossing.floats}));
}

std::span<const float> AsRows(const cut::Crossing& crossing, const at::Tensor& tensor, int64_t samples) {
  if (!tensor.defined() || crossing.axis > 0 || tensor.scalar_type() != at::kFloat || !tensor.is_contiguous())
    return {};
  return {tensor.data_ptr<float>(), static_cast<size_t>(samples * crossing.floats)};
}

absl::Status CheckSizes(const cut::Cut& cut, const worker::BlockShape& shape, const worker::BatchView& features,
                        worker::Values inputs) {
  const int64_t samples = features.samples;
  const exported::Range& range = cut.samples;
  if (samples > 0 &&
      ((range.least.has_value() && samples < *range.least) || (range.most.has_value() && samples > *range.most))) {
    return base::InvalidArgument(
        "a micro-batch of {} samples: the model was exported for {} to {}. Export with torch.export.Dim(\"batch\", "
        "min=1), or choose a batch size and micro-batches that give every replica as many",
        samples, range.least.value_or(0), range.most.has_value() ? std::to_string(*range.most) : "any number");
  }
  if (inputs.size() != shape.inputs.size()) {
    return base::InvalidArgument("the block needs {} values as inputs, got {}", shape.inputs.size(), inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size() == static_cast<size_t>(samples) * static_cast<size_t>(shape.inputs[i].width)) continue;
    return base::InvalidArgument(
        "the input of {} samples for operation {} has {} floats, the block needs {} per sample", samples,
        shape.inputs[i].operation, inputs[i].size(), shape.inputs[i].width);
  }
  return absl::OkStatus();
}

at::Tensor FromBatchRows(const worker::BatchView& batch, const worker::InputSlice& slice, at::ScalarType type) {
  std::vector<int64_t> sizes = {batch.samples}, strides = {0};
  sizes.insert(sizes.end(), slice.shape.begin(), slice.shape.end());
  strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 1; stride *= sizes[d]) strides[d] = stride;
  const size_t all = slice.integers ? batch.ids.size() : batch.numerics.size();
  strides[0] = static_cast<int64_t>(all / static_cast<size_t>(batch.samples));
  void* data = slice.integers ? static_cast<void*>(const_cast<int32_t*>(batch.ids.data()) + slice.first)
                              : static_cast<void*>(const_cast<float*>(batch.numerics.data()) + slice.first);
  const at::ScalarType stored = slice.integers ? at::kInt : at::kFloat;
  return at::from_blob(data, sizes, strides, at::TensorOptions().dtype(stored)).to(type).contiguous();
}

}  // namespace medley::worker::aten
