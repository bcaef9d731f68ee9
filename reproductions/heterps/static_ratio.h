// Static provisioning as used in practice, for comparison (HeterPS, section 6.1): the number of CPU cores has a fixed
// ratio to the number of GPU cards.
//
//   sta-ratio     1 card : 6 cores that train and serve parameters
//   sta-ps-ratio  1 card : 6 cores that train : 6 cores that serve parameters
//
// Cards are distributed over the GPU stages, and cores over the CPU stages, so that the slowest stage of each class is
// as fast as possible. The result is the cheapest feasible number of cards, which gives the static ratios better
// results than in the paper. Cores are bought only if the schedule uses them. Pure and thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "scheduler-service/provision/provisioned.h"

namespace medley::reproductions::heterps {

struct StaticRatio {
  int trainers_per_gpu = 6;
  int servers_per_gpu = 0;  // 0: servers take some of the trainers' cores
};

inline constexpr StaticRatio kStaRatio{6, 0};
inline constexpr StaticRatio kStaPsRatio{6, 6};

// nullopt if no number of cards meets the constraints, or if the schedule has no GPU stage.
std::optional<sched::Provisioned> ProvisionStatic(const sched::Problem& problem, std::vector<sched::StageChoice> stages,
                                                  const StaticRatio& ratio);

}  // namespace medley::reproductions::heterps
