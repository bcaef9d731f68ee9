// How long allreduce algorithms take, and which one is the fastest.
#pragma once

#include <absl/functional/function_ref.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/model/allreduce_algorithm.h"
#include "common/model/link_speed.h"
#include "common/model/reduce_level.h"

namespace medley::model {

// All but kAuto.
inline constexpr std::array kAllreduceAlgorithms = {AllreduceAlgorithm::kRing, AllreduceAlgorithm::kRecursiveDoubling,
                                                    AllreduceAlgorithm::kCentralized, AllreduceAlgorithm::kLinear};

// Seconds of one allreduce of `bytes` among `members` over equal links, in rounds of messages as in section 3.1 of the
// thesis on hierarchical clusters. kAuto is kRing.
double AllreduceSeconds(AllreduceAlgorithm algorithm, int members, const LinkSpeed& link, double bytes);

// The same where links differ: `link` is that between two members, of 0 to `members` - 1. Every algorithm uses only
// some links, in the order of members: a ring those of neighbours, a chain (kLinear) too, kCentralized those of
// `root`. In a round all wait for the slowest message.
using LinkOf = absl::FunctionRef<LinkSpeed(int from, int to)>;
double AllreduceSeconds(AllreduceAlgorithm algorithm, int members, LinkOf link, double bytes, int root = 0);

// Seconds until all have the bytes of member 0, along a binomial tree.
double BroadcastSeconds(int members, LinkOf link, double bytes);

// Seconds of an allreduce over groups of replicas, innermost level first; the first of each group takes part in the
// next level and then tells its group the sum. Groups of a level work at the same time. `link`: between two replicas.
// `root`: the replica that adds where a level is centralized and its group contains it; else the first of the group.
double HierarchicalSeconds(std::span<const ReduceLevel> levels, LinkOf link, double bytes, int root = 0);

// The largest number of sets of devices of a program whose sums are on their way at the same time, each over
// connections of its own; with more, all share connections.
inline constexpr size_t kMaxReducing = 16;

// Values (floats) in a piece of a sum of `values` that a parameter server of dense gradients makes for so many members,
// itself included (program::Group::served): a sixteenth, at least 64 KiB and at most 1 MiB, less the more members.
// A piece that was sent comes back before the member has sent ServedAhead more.
size_t ServedPiece(size_t members, size_t values);
size_t ServedAhead(size_t members);

// Seconds of such a sum of `bytes` of floats, which `root` makes piece by piece, so that pieces arrive and leave at the
// same time; but nothing leaves while the first arrives, and nothing arrives while the last leaves. kCentralized
// receives all before it sends.
double ServedSeconds(int members, LinkOf link, double bytes, int root);

// What the members send one another in an allreduce over groups, by pairs: `bytes` in all its messages together.
struct Traffic {
  int from = 0;  // replicas
  int to = 0;
  double bytes = 0;
};
std::vector<Traffic> TrafficOf(std::span<const ReduceLevel> levels, double bytes, int root = 0);

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
