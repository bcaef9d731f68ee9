// Loopback addresses for pods: each key has one of its own, the same whenever it can be.
//
// The address is picked by the hash of the key, so that a pod that is made again under its name has its
// address again, and two nodes on one machine seldom meet. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/base/mutex.h"

namespace medley::kube {

class AddressPool {
 public:
  // `cidr` such as "127.64.0.0/10", inside 127.0.0.0/8, /8 to /29. Errors: InvalidArgument.
  static absl::StatusOr<AddressPool> Parse(const std::string& cidr);
  AddressPool(AddressPool&& other) noexcept;

  // The address of `key`, taken when it has none. Errors: ResourceExhausted.
  absl::StatusOr<std::string> Take(const std::string& key);
  // Takes `address` for `key` if it is free and in the range; else nothing happens.
  void Claim(const std::string& key, const std::string& address);
  void Release(const std::string& key);

 private:
  AddressPool(uint32_t first, uint32_t count) : first_(first), count_(count) {}

  const uint32_t first_;  // host order; never the network's own or the broadcast address
  const uint32_t count_;
  base::Mutex mutex_;
  std::map<std::string, uint32_t> taken_ ABSL_GUARDED_BY(mutex_);
  std::set<uint32_t> used_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube
