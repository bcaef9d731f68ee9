// A baseline of HeterPS: rl-lstm with an Elman network instead of the LSTM.
#include "reproductions/heterps/heterps_planners.h"
#include "scheduler-service/planner/recurrent_planner.h"

namespace medley::reproductions::heterps {

std::unique_ptr<sched::StagePlanner> MakeRlRnn() {
  return sched::MakeRecurrentPlanner("rl-rnn", "Elman network policy over layers trained by REINFORCE (HeterPS)",
                                     sched::policy_net::CellKind::kElman);
}

std::vector<std::unique_ptr<sched::Planner>> MakeHeterpsPlanners() {
  std::vector<std::unique_ptr<sched::Planner>> planners;
  planners.push_back(MakeRlRnn());
  planners.push_back(MakeBayesian());
  planners.push_back(MakeGenetic());
  return planners;
}

}  // namespace medley::reproductions::heterps
