#include "worker/trainer/send_values.h"

#include <algorithm>
#include <span>
#include <vector>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr size_t kMost = size_t{4} << 20;  // values of a message

}  // namespace

absl::Status SendValues(Group& group, int to, uint64_t tag, const DenseValues& values) {
  std::vector<float> buffer;
  for (size_t first = 0; first < values.size(); first += kMost) {
    const size_t count = std::min(kMost, values.size() - first);
    MEDLEY_ASSIGN_OR_RETURN(const std::span<const float> piece, values.Read(first, count, buffer));
    MEDLEY_RETURN_IF_ERROR(group.Send(to, tag, std::as_bytes(piece)));
  }
  return absl::OkStatus();
}

absl::Status ReceiveValues(Group& group, int from, uint64_t tag, const DenseValues& values) {
  std::vector<float> buffer;
  for (size_t first = 0; first < values.size(); first += kMost) {
    const size_t count = std::min(kMost, values.size() - first);
    const std::span<float> piece = values.ForWriting(first, count, buffer);
    MEDLEY_RETURN_IF_ERROR(group.Recv(from, tag, std::as_writable_bytes(piece)));
    MEDLEY_RETURN_IF_ERROR(values.Store(first, piece));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
