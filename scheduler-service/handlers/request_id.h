// Request IDs, which connect log lines with the requests of callers. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace medley::sched {

class RequestIds {
 public:
  // Two services (or two runs of one) with different seeds generate different IDs.
  explicit RequestIds(uint64_t seed) : seed_(seed) {}
  // Returns the caller's ID if it is valid (1 to 64 letters, digits, '-', '_' or '.'), else a new ID.
  std::string Choose(std::string_view callers);

 private:
  const uint64_t seed_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace medley::sched
