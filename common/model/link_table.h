// How fast the links between all pairs of a cluster's devices are.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <vector>

#include "common/model/forward.h"
#include "common/model/link_speed.h"

namespace medley::model {

// The speed between all pairs of a cluster's devices. Immutable.
class LinkTable {
 public:
  // Checks the cluster too. Errors: InvalidArgument naming the field: no device or too many, a missing or repeated id,
  // a number out of range, an end that matches no device, two devices of different machines without a link.
  static absl::StatusOr<LinkTable> Make(const Cluster& cluster);

  int size() const { return size_; }
  // From device a to device b, by index in Cluster::devices. Devices of one machine without a link of their own, and a
  // device and itself, need no time: latency 0 and no limit (0 bytes per second).
  const LinkSpeed& Between(int a, int b) const {
    return speeds_[static_cast<size_t>(a) * static_cast<size_t>(size_) + static_cast<size_t>(b)];
  }

 private:
  int size_ = 0;
  std::vector<LinkSpeed> speeds_;
};

}  // namespace medley::model
