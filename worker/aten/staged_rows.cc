#include "worker/aten/staged_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status.h"

namespace medley::worker::aten {

StagedRows::StagedRows(std::shared_ptr<device::Device> device, const Place& place, std::vector<int64_t> columns)
    : device_(std::move(device)), place_(place), columns_(std::move(columns)), buffers_(columns_.size()) {}

// A copy that is under way uses the buffers.
StagedRows::~StagedRows() {
  base::MutexLock lock(mutex_);
  for (auto& buffers : buffers_) {
    for (Buffer& buffer : buffers) {
      if (buffer.copied != nullptr) static_cast<void>(device_->Await(*buffer.copied));
    }
  }
}

// The memory that LibTorch gives may be what computations before used, and they may still run.
absl::Status StagedRows::Grow(Buffer& buffer, size_t floats) {
  const size_t room = floats + floats / 4;
  MEDLEY_ASSIGN_OR_RETURN(buffer.host, device_->NewHostBuffer(room * sizeof(float)));
  buffer.there = at::empty({static_cast<int64_t>(room)}, place_.Floats());
  MEDLEY_ASSIGN_OR_RETURN(buffer.free, device_->MarkCompute());
  return absl::OkStatus();
}

absl::Status StagedRows::Stage(int64_t step, size_t table, std::span<const float> rows) {
  if (rows.empty()) return absl::OkStatus();
  base::MutexLock lock(mutex_);
  Buffer* chosen = nullptr;
  for (Buffer& buffer : buffers_.at(table)) {
    if (buffer.used) continue;
    if (chosen == nullptr || buffer.step == step || (buffer.step < 0 && chosen->step != step)) chosen = &buffer;
  }
  if (chosen == nullptr || (chosen->step >= 0 && chosen->step != step)) return absl::OkStatus();
  Buffer& buffer = *chosen;
  buffer.step = -1;
  if (buffer.copied != nullptr) MEDLEY_RETURN_IF_ERROR(device_->Await(*buffer.copied));
  if (!buffer.there.defined() || static_cast<size_t>(buffer.there.numel()) < rows.size()) {
    MEDLEY_RETURN_IF_ERROR(Grow(buffer, rows.size()));
  }
  std::memcpy(buffer.host->bytes().data(), rows.data(), rows.size_bytes());
  MEDLEY_ASSIGN_OR_RETURN(
      buffer.copied, device_->StartCopyIn(*buffer.host, rows.size_bytes(), buffer.there.data_ptr(), buffer.free.get()));
  buffer.step = step;
  buffer.floats = rows.size();
  return absl::OkStatus();
}

absl::StatusOr<at::Tensor> StagedRows::Take(int64_t step, size_t table, std::span<const float> rows) {
  const at::AutoGradMode none(false);
  base::MutexLock lock(mutex_);
  Buffer* found = nullptr;
  for (Buffer& buffer : buffers_.at(table)) {
    if (buffer.used) {
      MEDLEY_ASSIGN_OR_RETURN(buffer.free, device_->MarkCompute());
      buffer.used = false;
      buffer.step = -1;
    }
    if (buffer.step == step && buffer.floats == rows.size()) {
      found = &buffer;
    } else if (buffer.step >= 0 && buffer.step <= step) {
      buffer.step = -1;  // of a step that was given up
    }
  }
  if (found == nullptr) return at::Tensor();
  found->used = true;
  const auto columns = static_cast<size_t>(columns_.at(table));
  const auto count = static_cast<int64_t>(rows.size() / columns);
  MEDLEY_RETURN_IF_ERROR(device_->ComputeWaits(*found->copied));
  const at::Tensor there = found->there.narrow(0, 0, static_cast<int64_t>(rows.size())).view({count, columns_[table]});
  taken_ += count;
  std::vector<int64_t> places;
  std::vector<float> values;
  const auto* const staged = reinterpret_cast<const float*>(found->host->bytes().data());
  for (int64_t r = 0; r < count; ++r) {
    const size_t first = static_cast<size_t>(r) * columns;
    if (std::memcmp(staged + first, rows.data() + first, columns * sizeof(float)) == 0) continue;
    places.push_back(r);
    values.insert(values.end(), rows.begin() + static_cast<ptrdiff_t>(first),
                  rows.begin() + static_cast<ptrdiff_t>(first + columns));
  }
  if (places.empty()) return there;
  replaced_ += std::ssize(places);
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor to, place_.ToPlace(at::from_blob(places.data(), {std::ssize(places)},
                                                                            at::TensorOptions().dtype(at::kLong))));
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor from, place_.ToPlace(Over(values, {std::ssize(places), columns_[table]})));
  there.index_copy_(0, to, from);
  return there;
}

int64_t StagedRows::taken() const {
  base::MutexLock lock(mutex_);
  return taken_;
}

int64_t StagedRows::replaced() const {
  base::MutexLock lock(mutex_);
  return replaced_;
}

}  // namespace medley::worker::aten
