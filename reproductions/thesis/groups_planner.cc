#include "reproductions/thesis/groups_planner.h"

#include "scheduler-service/hierarchy/hierarchy_planner.h"
#include "scheduler-service/options/option_table.h"
#include "scheduler-service/planning/candidate.h"

namespace medley::reproductions::thesis {
namespace {

using sched::Formation;

struct GroupsOptions {
  Formation groups = Formation::kEqualPower;
};

const sched::OptionTable<GroupsOptions>& GroupsTable() {
  static const auto table =
      sched::OptionTable<GroupsOptions>().Choice<Formation>("groups", &GroupsOptions::groups,
                                                            {{"equal-power", Formation::kEqualPower},
                                                             {"links", Formation::kLinks},
                                                             {"pools", Formation::kPools},
                                                             {"random", Formation::kRandom},
                                                             {"one-ring", Formation::kOneRing}},
                                                            "how groups of replicas are formed");
  return table;
}

class GroupsPlanner final : public sched::Planner {
 public:
  std::string_view name() const override { return "thesis-groups"; }
  std::string_view description() const override {
    return "replicas that add in groups of one kind: of equal power, by links or pools, at random, or none (Wang 2023)";
  }
  sched::Takes takes() const override {
    return {.supply = sched::Supply::kDevices, .graphs = true, .asynchronous = false};
  }
  sched::Options options() const override { return GroupsTable().options(); }
  absl::StatusOr<sched::Candidate> Search(const sched::Question& question, sched::Judge& judge, uint64_t seed,
                                          const sched::Budget& limits) const override {
    MEDLEY_ASSIGN_OR_RETURN(const GroupsOptions options,
                            GroupsTable().Read(name(), question.request().planner.options));
    return sched::PlanReplicas(judge, options.groups, seed, limits);
  }
};

}  // namespace

std::unique_ptr<sched::Planner> MakeGroupsPlanner() { return std::make_unique<GroupsPlanner>(); }

}  // namespace medley::reproductions::thesis
