// How long allreduce algorithms take, and which one is the fastest.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/model/execution_plan.h"
#include "common/model/model.h"

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

// The same from measurements, for replicas on units of all `pools`; where one of these has none, from kUnmeasuredLink.
//
// An algorithm replaces the ring on sizes between two measured ones if it took at most kClearlyFaster of the ring's
// time at both, in every pool, so one disturbed measurement does not decide. Sizes below the smallest are as that;
// above the largest, the ring is used. A number of replicas that was not measured takes the times of the nearest one
// that was, by their ratio, times the ratio of AllreduceSeconds for both. Profilers measure on one machine, where no
// link is busy: kCentralized is left out where its root would get more than 256 KiB.
inline constexpr double kClearlyFaster = 0.8;
std::vector<AlgorithmRule> MeasuredRules(int members, std::span<const std::string> pools,
                                         std::span<const AllreduceMeasurement> measured);

// What AUTO means for a reduction of `bytes` among `members`: the rule with the smallest sufficient size; without one,
// the ring. Never kAuto.
AllreduceAlgorithm ChooseAllreduce(std::span<const AlgorithmRule> rules, int members, int64_t bytes);

}  // namespace medley::model
