// A baseline of HeterPS: the same planner with an Elman network instead of the LSTM.
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/recurrent_planner.h"

namespace medley::sched {

std::unique_ptr<Planner> MakeRlRnn() {
  return MakeRecurrentPlanner("rl-rnn", "Elman network policy over layers trained by REINFORCE (HeterPS)",
                              policy_net::CellKind::kElman);
}

}  // namespace medley::sched
