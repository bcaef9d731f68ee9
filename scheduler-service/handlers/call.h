// One call, as the front ends (gRPC, REST) pass it to the handlers, and what the handlers report about its response.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "common/base/clock.h"

namespace medley::sched {

// The versions of the prices, corrections and policies that a response was computed from. A response for another
// version is out of date.
struct InputVersion {
  int64_t catalog_revision = 0;
  uint64_t learned_state = 0;  // grows when a correction or a policy changes
  bool operator==(const InputVersion&) const = default;
};

struct Call {
  std::string id;        // request ID, in logs and responses
  std::stop_token stop;  // requested when the caller cancels or the service stops
  base::SteadyTime deadline = base::SteadyTime::max();
  bool from_operator = false;  // the caller is the operator, whose requests are served first
  std::string tenant;          // whose observations correct the profiles, as authenticated; empty: all callers are one

  // Set by the handler:
  bool reproducible = false;  // the same request and input_version give the same response: it may be cached
  bool cached = false;        // the response came from the cache
  InputVersion input_version;
  std::string planner;  // a name from the registry, or empty
};

}  // namespace medley::sched
