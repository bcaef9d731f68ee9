// The planner of HeterPS: an LSTM policy.
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/recurrent_planner.h"

namespace medley::sched {

std::unique_ptr<StagePlanner> MakeRlLstm() {
  return MakeRecurrentPlanner("rl-lstm", "LSTM policy over layers trained by REINFORCE (HeterPS)",
                              policy_net::CellKind::kLstm);
}

}  // namespace medley::sched
