// The static provisioning that practice uses, as a yardstick (HeterPS, section 6.1): CPU cores are bought in a fixed
// proportion to GPU cards.
//
//   sta-ratio     1 card : 6 cores, which train and serve parameters
//   sta-ps-ratio  1 card : 6 cores that train : 6 cores that serve parameters
//
// Cards are shared among the GPU stages, and cores among the CPU stages, so that the slowest stage of each class is as
// fast as can be. Of all numbers of cards the cheapest that keeps the constraints is taken, which is kinder to the
// ratios than the paper is. Cores are bought only for a class that the schedule uses. Pure and thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

struct StaticRatio {
  int trainers_per_gpu = 6;
  int servers_per_gpu = 0;  // 0: servers come out of the trainers' cores
};

inline constexpr StaticRatio kStaRatio{6, 0};
inline constexpr StaticRatio kStaPsRatio{6, 6};

// Nothing when no number of cards keeps the constraints, or when the schedule has no GPU stage to set the ratio by.
std::optional<Provisioned> ProvisionStatic(const Problem& problem, std::vector<StageChoice> stages,
                                           const StaticRatio& ratio);

}  // namespace medley::sched
