// Which devices form groups (thesis, section 4.1, Algorithm 1). Pure.
//
// Algorithm 1 compares each worker only with its neighbours in the list, so its groups depend on the order of the
// workers. These functions use all pairs: renaming or reordering devices changes nothing but the order of groups.
#pragma once

#include <functional>
#include <vector>

#include "common/base/rng.h"

namespace medley::sched {

// Devices by group. Each device is in one group; groups and their members are in ascending order.
using Grouping = std::vector<std::vector<int>>;

// How many orders of magnitude `cost` is above `least`: the decimal logarithm of their ratio, rounded, so that values
// within a factor of 3.16 of the least count as equal. Both greater than 0; 0 for a cost of 0.
int Magnitude(double cost, double least);

// `costs(a, b)`: seconds of a message between two of the devices, symmetric. Result k: the groups of devices that
// are connected by links of at most the k-th order of magnitude that occurs, the smallest first, so each is a
// refinement of the next. The last is one group of all. One device: one group.
std::vector<Grouping> GroupsByLinks(const std::vector<int>& devices, const std::function<double(int, int)>& costs);

// Divides each group into devices of one order of magnitude of `seconds` (of a sample on device d), compared with the
// fastest of all devices.
Grouping DividedByPower(const Grouping& groups, const std::function<double(int)>& seconds);

// `count` groups whose sums of 1 / seconds(d) are about equal ("homogeneous groups of heterogeneous nodes"): the most
// powerful device first, each into the weakest group. At most as many groups as devices.
Grouping EqualPower(const std::vector<int>& devices, int count, const std::function<double(int)>& seconds);

// `count` groups of equal size (but for one device), drawn at random: the baseline of section 4.2.
Grouping RandomGroups(const std::vector<int>& devices, int count, base::Rng& rng);

}  // namespace medley::sched
