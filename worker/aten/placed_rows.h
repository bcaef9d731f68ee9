// The rows of a table that an open step uses, and the sum of their gradients, in the place of the block. Rows are
// copied there once a step, and gradients back once a step.
//
// Not thread-safe. Throws what LibTorch throws; other errors are those of Place.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>

#include "worker/aten/place.h"
#include "worker/aten/torch.h"
#include "worker/model/aligned_floats.h"

namespace medley::worker::aten {

class PlacedRows {
 public:
  // Copies the rows, which are `columns` wide, and forgets the gradients.
  absl::Status Set(const Place& place, std::span<const float> rows, int64_t columns);

  // The same for rows that are in place already.
  void SetThere(const at::Tensor& rows, size_t floats);
  // Takes rows that are in place already: their gradients are not for the host.
  void SetPlaced(const at::Tensor& rows);
  // The sums so far; undefined: zeros.
  const at::Tensor& sums() const { return sums_; }

  // Rows at these positions: one after the other, as a leaf of autograd with `training`.
  at::Tensor Gather(const at::Tensor& positions, bool training) const;
  // Adds gradients of gathered rows.
  void AddGradients(const at::Tensor& positions, const at::Tensor& gradients);
  // Copies the sums where they have changed since the last call.
  absl::Status GradientsToHost(const Place& place);
  // Those of the last GradientsToHost; zeros where there was none.
  std::span<const float> host_gradients() const { return host_.First(floats_); }

 private:
  at::Tensor rows_, sums_;  // sums_: undefined before the first gradient
  bool changed_ = false;    // since they were copied
  AlignedFloats host_;
  size_t floats_ = 0;
};

}  // namespace medley::worker::aten
