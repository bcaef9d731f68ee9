// Loopback addresses for pods: each key has its own address, and the same one again whenever possible.
//
// The hash of node and key selects the address, so a pod that is recreated with the same name gets its old address, and
// two nodes on one machine rarely collide, even where pods of one job run on each. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/base/mutex.h"

namespace medley::localcluster {

class AddressPool {
 public:
  // `cidr` such as "127.64.0.0/10", inside 127.0.0.0/8, /8 to /29; `node`: what tells this node from others on the
  // machine. Errors: InvalidArgument.
  static absl::StatusOr<AddressPool> Parse(const std::string& cidr, std::string node);
  AddressPool(AddressPool&& other) noexcept;

  // Returns the address of `key`; assigns one if it has none. Errors: ResourceExhausted.
  absl::StatusOr<std::string> Take(const std::string& key);
  // Assigns `address` to `key` if it is unused and in the range; otherwise does nothing.
  void Claim(const std::string& key, const std::string& address);
  void Release(const std::string& key);

 private:
  AddressPool(std::string node, uint32_t first, uint32_t count)
      : node_(std::move(node)), first_(first), count_(count) {}

  const std::string node_;
  const uint32_t first_;  // in host byte order; excludes the network and broadcast addresses
  const uint32_t count_;
  base::Mutex mutex_;
  std::map<std::string, uint32_t> taken_ ABSL_GUARDED_BY(mutex_);
  std::set<uint32_t> used_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::localcluster
