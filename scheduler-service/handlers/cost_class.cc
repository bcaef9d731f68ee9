#include "scheduler-service/handlers/cost_class.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

constexpr int64_t kCheapCells = 4096;  // layers times resource types
constexpr double kCheapBudgetSeconds = 10;
// Planners that end by themselves, as a rule within milliseconds.
constexpr std::array<std::string_view, 7> kQuickPlanners = {"",          "auto",     "exact",   "greedy",
                                                            "heuristic", "cpu-only", "gpu-only"};

CostClass BySize(int64_t layers, int64_t types) {
  return layers * std::max<int64_t>(types, 1) <= kCheapCells ? CostClass::kCheap : CostClass::kExpensive;
}

CostClass BySize(const pb::PlanRequest& in) {
  int64_t types = in.resources_size();
  for (const auto& layer : in.model().layers()) types = std::max<int64_t>(types, layer.profiles_size());
  return BySize(in.model().layers_size(), types);
}

}  // namespace

const char* NameOf(CostClass cost) {
  switch (cost) {
    case CostClass::kOperator:
      return "operator";
    case CostClass::kCheap:
      return "cheap";
    case CostClass::kExpensive:
      return "expensive";
  }
  return "";
}

CostClass CostClassOf(const pb::PlanRequest& in) {
  if (in.objective() == pb::OBJECTIVE_STEP_TIME) return CostClass::kExpensive;
  const std::string_view planner = in.planner().name();
  if (std::find(kQuickPlanners.begin(), kQuickPlanners.end(), planner) == kQuickPlanners.end())
    return CostClass::kExpensive;
  return in.planner().time_budget_seconds() > kCheapBudgetSeconds ? CostClass::kExpensive : BySize(in);
}

CostClass CostClassOf(const pb::ParetoRequest&) { return CostClass::kExpensive; }
CostClass CostClassOf(const pb::ProvisionRequest& in) { return BySize(in.request()); }
CostClass CostClassOf(const pb::EvaluateRequest& in) { return BySize(in.request()); }
CostClass CostClassOf(const pb::SimulateRequest&) { return CostClass::kExpensive; }
CostClass CostClassOf(const pb::ProfileRequest& in) { return BySize(in.model().layers_size(), in.hardware_size()); }

}  // namespace medley::sched
