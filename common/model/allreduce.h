// How long allreduce algorithms take, and which one is the fastest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/model/execution_plan.h"

namespace medley::model {

// What one message costs: latency + bytes / bytes_per_second. 0 bytes per second: no limit.
struct LinkSpeed {
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

// The speed of a link that nobody has measured: processes of one machine over loopback (docs/design/collectives.md).
inline constexpr LinkSpeed kUnmeasuredLink{1e-4, 1.5e9};

// Seconds of one allreduce of `bytes` among `members` over equal links, in rounds of messages as in section 3.1 of the
// thesis on hierarchical clusters. kAuto is kRing.
double AllreduceSeconds(AllreduceAlgorithm algorithm, int members, const LinkSpeed& link, double bytes);

// The rules by which AUTO is resolved among `members` replicas: recursive doubling, which has fewer rounds, up to the
// size at which the ring is faster, because it sends less. The size is at most 256 KiB: above it, a ring that adds
// while it sends was faster in every measurement.
std::vector<AlgorithmRule> AllreduceRules(int members, const LinkSpeed& link);

// What AUTO means for a reduction of `bytes` among `members`: the rule with the smallest sufficient size; without one,
// the ring. Never kAuto.
AllreduceAlgorithm ChooseAllreduce(std::span<const AlgorithmRule> rules, int members, int64_t bytes);

}  // namespace medley::model
