// One call as the doors (gRPC, REST) hand it to the handlers, and what they learn from its answer.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "common/base/clock.h"

namespace medley::sched {

// Which prices, observations and policies an answer rests on. An answer of another input_version is out of date.
struct InputVersion {
  int64_t catalog_revision = 0;
  uint64_t learned_state = 0;  // grows when a correction or a policy changes
  bool operator==(const InputVersion&) const = default;
};

struct Call {
  std::string id;        // of the request, in logs and answers
  std::stop_token stop;  // the caller has left, or the service ends
  base::SteadyTime deadline = base::SteadyTime::max();

  // Set by the handler:
  bool reproducible = false;  // the same request of the same input_version gets the same answer: may be kept
  bool cached = false;        // the answer was kept from an earlier call
  InputVersion input_version;
  std::string planner;  // a name of the registry, or empty
};

}  // namespace medley::sched
