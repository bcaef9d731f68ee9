#include "common/model/cluster.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/status.h"
#include "common/model/checks.h"
#include "common/model/device.h"
#include "common/model/link_table.h"

namespace medley::model {
namespace {

// A name that an end of a link may have, and how specific it is: larger counts more.
struct Name {
  std::string text;
  int rank = 0;
};

constexpr int kIdRank = 1000, kMachineRank = 900, kDeepestLocation = 800, kPoolRank = 1, kAnyRank = 0;

std::vector<Name> NamesOf(const Device& device) {
  std::vector<Name> names = {{"*", kAnyRank}, {device.pool, kPoolRank}};
  int depth = 0;
  for (size_t end = 0; end != std::string::npos && !device.location.empty();) {
    end = device.location.find('/', end == 0 ? 0 : end + 1);
    depth = std::min(depth + 1, kDeepestLocation - kPoolRank);
    names.push_back({device.location.substr(0, end), kPoolRank + depth});
  }
  if (!device.machine.empty()) names.push_back({device.machine, kMachineRank});
  names.push_back({device.id, kIdRank});
  return names;
}

absl::Status CheckDevices(const std::vector<Device>& devices) {
  if (devices.empty()) return base::InvalidArgument("cluster.devices: must not be empty");
  if (devices.size() > kMaxClusterDevices) {
    return base::InvalidArgument("cluster.devices: {} devices, at most {} are allowed", devices.size(),
                                 kMaxClusterDevices);
  }
  std::set<std::string_view> ids;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].id.empty()) return base::InvalidArgument("cluster.devices[{}].id: must not be empty", d);
    if (devices[d].pool.empty()) return base::InvalidArgument("cluster.devices[{}].pool: must not be empty", d);
    if (!ids.insert(devices[d].id).second) {
      return base::InvalidArgument("cluster.devices[{}].id: '{}' appears twice", d, devices[d].id);
    }
  }
  return absl::OkStatus();
}

// The names of devices that some link uses, as numbers, and the links by the numbers of their ends.
class LinkIndex {
 public:
  explicit LinkIndex(const std::vector<ClusterLink>& links) {
    for (const ClusterLink& link : links) {
      const int from = Number(link.from), to = Number(link.to);
      by_ends_[{from, to}] = {link.latency_seconds, link.bytes_per_second};  // of equal links the last counts
    }
  }

  struct Known {
    int number = 0;
    int rank = 0;
  };
  // Those names of a device that links use, the most specific first.
  std::vector<Known> KnownNames(const Device& device) const {
    std::vector<Known> known;
    for (const Name& name : NamesOf(device)) {
      const auto found = numbers_.find(name.text);
      if (found != numbers_.end()) known.push_back({found->second, name.rank});
    }
    return known;
  }

  // Null if no link matches.
  const LinkSpeed* Best(const std::vector<Known>& from, const std::vector<Known>& to) const {
    const LinkSpeed* best = nullptr;
    int rank = -1;
    for (const Known& a : from) {
      for (const Known& b : to) {
        const int own = 2 * (a.rank + b.rank);  // the given direction counts more than the other
        if (own + 1 > rank) Take({a.number, b.number}, own + 1, rank, best);
        if (own > rank) Take({b.number, a.number}, own, rank, best);
      }
    }
    return best;
  }

 private:
  using Ends = std::pair<int, int>;
  int Number(const std::string& name) {
    return numbers_.try_emplace(name, static_cast<int>(numbers_.size())).first->second;
  }
  void Take(const Ends& ends, int own, int& rank, const LinkSpeed*& best) const {
    const auto found = by_ends_.find(ends);
    if (found == by_ends_.end()) return;
    rank = own;
    best = &found->second;
  }
  struct HashEnds {
    size_t operator()(const Ends& ends) const {
      return static_cast<size_t>(ends.first) * 0x9E3779B97F4A7C15ULL + static_cast<size_t>(ends.second);
    }
  };

  std::unordered_map<std::string, int> numbers_;
  std::unordered_map<Ends, LinkSpeed, HashEnds> by_ends_;
};

absl::Status CheckLinks(const Cluster& cluster) {
  if (cluster.links.size() > kMaxClusterLinks) {
    return base::InvalidArgument("cluster.links: {} links, at most {} are allowed", cluster.links.size(),
                                 kMaxClusterLinks);
  }
  std::set<std::string> names;
  for (const Device& device : cluster.devices) {
    for (Name& name : NamesOf(device)) names.insert(std::move(name.text));
  }
  for (size_t l = 0; l < cluster.links.size(); ++l) {
    const ClusterLink& link = cluster.links[l];
    const std::string path = fmt::format("cluster.links[{}]", l);
    for (const auto& [end, field] : {std::pair(&link.from, "from"), std::pair(&link.to, "to")}) {
      if (names.contains(*end)) continue;
      return base::InvalidArgument("{}.{}: '{}' is no device, machine, location or pool of the cluster", path, field,
                                   *end);
    }
    MEDLEY_RETURN_IF_ERROR(CheckNotNegative(link.latency_seconds, path + ".latencySeconds"));
    MEDLEY_RETURN_IF_ERROR(CheckPositive(link.bytes_per_second, path + ".bytesPerSecond"));
  }
  return absl::OkStatus();
}

}  // namespace

Cluster ClusterOf(const Cluster& cluster, std::vector<Device> devices) {
  std::set<std::string> names;
  for (const Device& device : devices) {
    for (Name& name : NamesOf(device)) names.insert(std::move(name.text));
  }
  Cluster out{std::move(devices), {}};
  for (const ClusterLink& link : cluster.links) {
    if (names.contains(link.from) && names.contains(link.to)) out.links.push_back(link);
  }
  return out;
}

absl::StatusOr<LinkTable> LinkTable::Make(const Cluster& cluster) {
  MEDLEY_RETURN_IF_ERROR(CheckDevices(cluster.devices));
  MEDLEY_RETURN_IF_ERROR(CheckLinks(cluster));
  LinkTable table;
  table.size_ = static_cast<int>(cluster.devices.size());
  const size_t n = cluster.devices.size();
  table.speeds_.assign(n * n, {});
  const LinkIndex index(cluster.links);
  std::vector<std::vector<LinkIndex::Known>> names;
  for (const Device& device : cluster.devices) names.push_back(index.KnownNames(device));
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < n; ++b) {
      if (a == b) continue;
      const LinkSpeed* best = index.Best(names[a], names[b]);
      const std::string& machine = cluster.devices[a].machine;
      const bool local = !machine.empty() && machine == cluster.devices[b].machine;
      if (best == nullptr && !local) {
        return base::InvalidArgument("cluster.links: no link connects devices '{}' and '{}'", cluster.devices[a].id,
                                     cluster.devices[b].id);
      }
      if (best != nullptr) table.speeds_[a * n + b] = *best;
    }
  }
  return table;
}

}  // namespace medley::model
