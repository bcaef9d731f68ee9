// Whether slower nodes should take part in a computation (thesis, section 3.2). Pure.
//
// The thesis gives nodes a cost per byte and connections a transfer cost per byte. Some of its equations are
// misprinted, and some add the times of groups that work at the same time; docs/papers/thesis.md derives the right
// forms. Those with "Printed" are kept for comparison only: nothing decides by them.
#pragma once

#include <vector>

namespace medley::reproductions::thesis {

// One fast node of cost 1 a byte and `slow` nodes of cost `ratio` a byte each, behind connections of `transfer` a byte.
// Seconds for one byte of work:
// Equations 3.2 and 3.3: bytes are shared by computing power alone, so slow nodes end later by their transfers.
double SharedByPower(int slow, double ratio, double transfer);
// The same with the shares at which all end at the same time; never more than 1, the fast node alone (3.1).
double SharedByTime(int slow, double ratio, double transfer);

// Two operations, the second `r` times as expensive as the first (3.4), on one fast node; or the second there and the
// first on `slow` nodes at the same time (3.6, 3.7). Seconds for one byte:
double BothOnFast(double r);                                            // 3.5; printed as "= n"
double FirstOnSlow(double r, int slow, double ratio, double transfer);  // the longer of 3.6 and 3.7
// The r from which FirstOnSlow is shorter than BothOnFast (3.9, printed with a second relation behind it).
double LeastRatio(int slow, double ratio, double transfer);

// Nodes of one group: alike, each needs `seconds` for a job, its transfer included.
struct NodeGroup {
  int nodes = 1;
  double seconds = 1;
};
// 3.10: `jobs` whole jobs in one group, as printed: one round too many when they divide evenly.
double PrintedOneGroup(const NodeGroup& group, int jobs);
double OneGroup(const NodeGroup& group, int jobs);
// 3.15: `magnitude` is N, the factor between the costs of neighbouring groups, `transfer` is n T_r. Group i (from 1)
// needs N^i + n T_r for a job. As printed, the times of the groups are added.
double PrintedGroups(const std::vector<int>& nodes, double magnitude, double transfer, double jobs);
// Right: the groups work at the same time, and jobs are divided so that all end together.
double Groups(const std::vector<NodeGroup>& groups, double jobs);

}  // namespace medley::reproductions::thesis
