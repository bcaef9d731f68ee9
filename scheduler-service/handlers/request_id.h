// Names of requests, for logs and for callers that ask about one. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace medley::sched {

class RequestIds {
 public:
  // Two services (or two runs of one) with different seeds give different names.
  explicit RequestIds(uint64_t seed) : seed_(seed) {}
  // The caller's own name for the request when it is one (1 to 64 letters, digits, '-', '_' or '.'), else a new one.
  std::string Choose(std::string_view callers);

 private:
  const uint64_t seed_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace medley::sched
