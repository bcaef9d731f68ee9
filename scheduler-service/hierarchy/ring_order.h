// The order of devices in a ring: its slowest message decides how long a ring takes. Pure.
#pragma once

#include <functional>
#include <vector>

namespace medley::sched {

// Seconds of a message from one device to another.
using MessageCost = std::function<double(int from, int to)>;

inline constexpr size_t kExactRing = 9;  // devices; at most 12, for the memory of the exact search

// The longest message of a ring.
double RingBottleneck(const std::vector<int>& ring, const MessageCost& cost);

// A ring over `devices` whose longest message is short: up to kExactRing devices the shortest possible, by dynamic
// programming over subsets; else nearest neighbours first, then exchanges of its slowest link while they help. Starts
// with devices.front().
std::vector<int> RingOrder(const std::vector<int>& devices, const MessageCost& cost);

}  // namespace medley::sched
