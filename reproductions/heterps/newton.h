// The provisioning of HeterPS (section 5.1): balanced stages, with Newton's method in one real unknown.
//
// All stages have the same execution time tau per iteration (load balance, Eq. 11 and 12), so tau determines the units
// of all stages: k_i(tau) is the real number of units with ET_i(k_i) = tau. The unknown in the paper is k_1; we use
// tau = ET_1(k_1), which is also defined if the work of stage 1 does not divide. The cost of an iteration is
//   f(tau) = tau * sum_i price_i * max(minUnits, k_i(tau)),    k_i(tau) = max(C_i / (tau - c_i), D_i / (tau - d_i)),
// where c and d are the serial parts of computation and communication, and C and D the parts that divide by units.
// Newton's method solves f'(tau) = 0 within the bounds from the throughput (Eq. 13) and the limits (Eq. 10). The units
// are rounded up and then repaired: units that the pipeline's throughput does not need are removed, and if rounding
// exceeded a limit, the pipeline is slowed down step by step.
//
// The result is not the optimum; provision/exact.h computes that. Pure and thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "scheduler-service/provision/provisioned.h"

namespace medley::reproductions::heterps {

// `stages` have layers and types; their units are ignored. nullopt if it finds no units that meet the constraints.
std::optional<sched::Provisioned> ProvisionNewton(const sched::Problem& problem,
                                                  std::vector<sched::StageChoice> stages);

}  // namespace medley::reproductions::heterps
