// Members of unlike speed in groups, as in the thesis' Table 4.1 and section 4.4.3. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/integration/worker/job_harness.h"

namespace medley::bench {

// Members that add in every step. Its name is their pool.
struct MemberGroup {
  std::string name;
  int members = 1;
  double cores = 1;  // of each member
};

int CountMembers(const std::vector<MemberGroup>& groups);

// Cores of each pool.
std::map<std::string, double> CoresOf(const std::vector<MemberGroup>& groups);

// The group of each member, in the order of the members' names: "t0-0", "t0-1", "t0-10", "t0-11", "t0-2".
std::vector<std::string> PoolsByName(const std::vector<MemberGroup>& groups);

// Replicas of a model of `operations` operations, one a member: "t0-0" is the first of the first group. They agree as
// the mode of `how` says; its stages are ignored. With `proportional` each gets a share of the batch by its cores.
worker::JobShape ReplicasInGroups(const std::vector<MemberGroup>& groups, int operations, bool proportional,
                                  const worker::JobShape& how);

// Pairs of members of different groups, by name.
std::vector<std::pair<std::string, std::string>> LinksBetween(const std::vector<MemberGroup>& groups);

}  // namespace medley::bench
