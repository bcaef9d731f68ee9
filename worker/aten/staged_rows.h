// Rows of a coming step, which are copied to the device while it computes another one, from pinned memory and on a
// stream of their own.
//
// They may be older than those that the step must have: Take compares them with these and replaces what differs. So no
// value depends on what was staged, or when; only the time does. Three buffers a table: of the step that is computed,
// of the next, and of the one after it, which may be staged before the first is free. Where no buffer is free, nothing
// is staged.
//
// Thread-safe for one staging thread and one that computes. Throws what LibTorch throws.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "worker/aten/place.h"
#include "worker/aten/torch.h"
#include "worker/device/device.h"

namespace medley::worker::aten {

class StagedRows {
 public:
  // `columns`: by table.
  StagedRows(std::shared_ptr<device::Device> device, const Place& place, std::vector<int64_t> columns);
  ~StagedRows();

  // Begins to copy rows of `step`. Errors: those of the device.
  absl::Status Stage(int64_t step, size_t table, std::span<const float> rows);
  // The rows of `step` on the device, rows x columns, as they are in `rows`; undefined where none, or another number of
  // them, were staged. Valid until the next Take of the table. Errors: those of the device.
  absl::StatusOr<at::Tensor> Take(int64_t step, size_t table, std::span<const float> rows);

  int64_t taken() const;     // rows that Take found staged, so far
  int64_t replaced() const;  // those of them that differed

 private:
  struct Buffer {
    int64_t step = -1;  // whose rows are in it; -1: it is free
    bool used = false;  // by the step that is computed
    size_t floats = 0;
    std::unique_ptr<device::HostBuffer> host;
    at::Tensor there;                            // of at least as many floats
    std::shared_ptr<const device::Mark> copied;  // the last copy to it; null: none
    std::shared_ptr<const device::Mark> free;    // what was computed with it; null: nothing
  };
  absl::Status Grow(Buffer& buffer, size_t floats);

  const std::shared_ptr<device::Device> device_;
  const Place place_;
  const std::vector<int64_t> columns_;
  mutable base::Mutex mutex_;
  std::vector<std::array<Buffer, 3>> buffers_ ABSL_GUARDED_BY(mutex_);  // by table
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0, replaced_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::worker::aten
