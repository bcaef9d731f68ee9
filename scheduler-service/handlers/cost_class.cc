#include "scheduler-service/handlers/cost_class.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

constexpr int64_t kCheapCells = 4096;  // layers times resource types
constexpr int64_t kTinyCells = 256;
constexpr int64_t kTinyBytes = 32 << 10;
constexpr double kCheapBudgetSeconds = 10;
// Planners that end by themselves, as a rule within milliseconds.
constexpr std::array<std::string_view, 7> kQuickPlanners = {"",          "auto",     "exact",   "greedy",
                                                            "heuristic", "cpu-only", "gpu-only"};

Cost BySize(int64_t layers, int64_t types, size_t message) {
  const int64_t cells = layers * std::max<int64_t>(types, 1);
  const auto bytes = static_cast<int64_t>(message);
  const CostClass cost = cells > kCheapCells                        ? CostClass::kExpensive
                         : cells > kTinyCells || bytes > kTinyBytes ? CostClass::kCheap
                                                                    : CostClass::kTiny;
  return {cost, cells + bytes / 1024};
}

Cost BySize(const pb::PlanRequest& in) {
  int64_t types = in.resources_size();
  for (const auto& layer : in.model().layers()) types = std::max<int64_t>(types, layer.profiles_size());
  return BySize(in.model().layers_size(), types, in.ByteSizeLong());
}

}  // namespace

const char* NameOf(CostClass cost) {
  switch (cost) {
    case CostClass::kOperator:
      return "operator";
    case CostClass::kTiny:
      return "tiny";
    case CostClass::kCheap:
      return "cheap";
    case CostClass::kExpensive:
      return "expensive";
  }
  return "";
}

Cost CostOf(const pb::PlanRequest& in) {
  Cost cost = BySize(in);
  const std::string_view planner = in.planner().name();
  const bool quick = std::find(kQuickPlanners.begin(), kQuickPlanners.end(), planner) != kQuickPlanners.end();
  const bool on_devices = in.objective() == pb::OBJECTIVE_STEP_TIME || in.cluster().devices_size() > 0;
  if (!quick || on_devices || in.planner().time_budget_seconds() > kCheapBudgetSeconds) {
    cost.cost = CostClass::kExpensive;
  } else if (cost.cost == CostClass::kTiny && in.simulate()) {
    cost.cost = CostClass::kCheap;  // the plan may be much larger than the request
  }
  return cost;
}

Cost CostOf(const pb::ParetoRequest& in) { return {CostClass::kExpensive, BySize(in.request()).weight}; }
Cost CostOf(const pb::ProvisionRequest& in) { return BySize(in.request()); }
Cost CostOf(const pb::EvaluateRequest& in) { return BySize(in.request()); }
Cost CostOf(const pb::SimulateRequest& in) {
  return {CostClass::kExpensive, static_cast<int64_t>(in.ByteSizeLong() / 1024)};
}
Cost CostOf(const pb::ProfileRequest& in) {
  return BySize(in.model().layers_size(), in.hardware_size(), in.ByteSizeLong());
}

Cost CostOfReading(size_t bytes) {
  return {bytes <= kTinyBytes ? CostClass::kTiny : CostClass::kCheap, static_cast<int64_t>(bytes / 1024)};
}

}  // namespace medley::sched
