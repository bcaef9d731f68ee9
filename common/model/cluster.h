// A fixed set of devices and the links between them: what planners of the goal "seconds of a step" may use.
#pragma once

#include <string>
#include <vector>

#include "common/model/device.h"

namespace medley::model {

// A link holds for every pair of devices that its ends match. An end is the id of a device, a machine, a location ("a"
// matches "a" and "a/b"), a pool, or "*" for all; the ends that are named first here are the more specific ones. Of the
// links that match a pair, the most specific counts, and of links with the same ends the last. A link holds in both
// directions, unless the other direction has one that is at least as specific.
struct ClusterLink {
  std::string from;
  std::string to;
  double latency_seconds = 0;   // at least 0
  double bytes_per_second = 0;  // greater than 0
  bool operator==(const ClusterLink&) const = default;
};

struct Cluster {
  std::vector<Device> devices;
  std::vector<ClusterLink> links;
  bool operator==(const Cluster&) const = default;
};

// The cluster with some of its devices only, and the links that name one of them at each end.
Cluster ClusterOf(const Cluster& cluster, std::vector<Device> devices);

inline constexpr int kMaxClusterDevices = 1024;
inline constexpr int kMaxClusterLinks = 100'000;

}  // namespace medley::model
