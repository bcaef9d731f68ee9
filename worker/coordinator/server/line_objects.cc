#include "worker/coordinator/server/line_objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr size_t kFull = size_t{1} << 20;
constexpr size_t kMostWaiting = size_t{64} << 20;
constexpr int64_t kMostRead = int64_t{128} << 20;  // more than one object ever has

}  // namespace

absl::StatusOr<std::string> LineObjects::Last() const {
  const absl::StatusOr<std::vector<std::string>> names = volume_.files().List(folder_);
  if (absl::IsNotFound(names.status())) return std::string();
  MEDLEY_RETURN_IF_ERROR(names.status());
  if (names->empty()) return std::string();
  return volume_.files().ReadWhole(folder_ / *std::ranges::max_element(*names), kMostRead);
}

absl::Status LineObjects::Add(std::string_view line) {
  if (lines_.size() + line.size() > kMostWaiting) {
    return base::ResourceExhausted("{}: lines are lost, because {} bytes wait for the store", folder_.string(),
                                   lines_.size());
  }
  lines_ += line;
  waits_ = true;
  if (lines_.size() < (tried_ == 0 ? kFull : tried_ + kFull)) return absl::OkStatus();
  tried_ = lines_.size();
  MEDLEY_RETURN_IF_ERROR(Sync());
  lines_.clear();
  tried_ = 0;
  ++number_;
  return absl::OkStatus();
}

absl::Status LineObjects::Sync() {
  if (!waits_) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(
      volume_.files().WriteAtomic(folder_ / fmt::format("{}-{:08}.jsonl", writer_, number_), lines_));
  waits_ = false;
  return absl::OkStatus();
}

}  // namespace medley::worker
