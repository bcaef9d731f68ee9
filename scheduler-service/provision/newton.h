// The paper's provisioning: one real unknown, balanced stages, Newton's method (HeterPS, section 5.1).
//
// All stages are given the same time tau of an iteration (load balance, Eq. 11 and 12), so that one number decides the
// units of all: k_i(tau) is the real number of units with ET_i(k_i) = tau. The paper's unknown is k_1; tau is the same
// unknown, ET_1(k_1), and stays defined when stage 1 does not divide. The cost of an iteration,
//   f(tau) = tau * sum_i price_i * max(minUnits, k_i(tau)),    k_i(tau) = max(C_i / (tau - c_i), D_i / (tau - d_i))
// (c, d: what does not divide of computation and communication; C, D: what does), is minimised by Newton's method on
// f'(tau) = 0, kept within the bounds that the throughput (Eq. 13) and the limits (Eq. 10) set. Units are rounded up,
// then repaired: no stage keeps units that the pipeline's throughput does not need, and where rounding broke a limit
// the pipeline is slowed step by step.
//
// Not the optimum: provision/exact.h is. Pure and thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

// `stages`: layers and types; their units are not read. Nothing when it finds no units that keep the constraints.
std::optional<Provisioned> ProvisionNewton(const Problem& problem, std::vector<StageChoice> stages);

}  // namespace medley::sched
