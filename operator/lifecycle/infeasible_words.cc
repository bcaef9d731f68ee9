#include "operator/lifecycle/infeasible_words.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <string_view>

#include "common/base/figure.h"
#include "operator/lifecycle/limit_advice.h"
#include "operator/records/memory_check.h"

namespace medley::ops::lifecycle {
namespace {

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

std::string InWords(const model::Reason& reason, const UsablePools& pools) {
  std::string words = reason.message;
  if (words.empty()) {
    words =
        fmt::format("{}{}{}: needed {}, available {}", reason.constraint, reason.resource_type.empty() ? "" : " of ",
                    reason.resource_type, base::Figure(reason.needed), base::Figure(reason.available));
  }
  words = Replaced(std::move(words), "maxCostPerHour", "maxUsdPerHour");  // as in the manifest
  const PoolView* view = pools.Find(reason.resource_type);
  const bool about_units = reason.constraint == "limit" || reason.constraint == "units";
  if (about_units && view != nullptr) {
    words = WithLimitAdvice(std::move(words), view->pool.name, reason.needed, view->pool.limit, view->bound);
  }
  const bool of_host = view != nullptr && UnitMemory(view->pool) > 0 &&
                       (view->pool.memory_bytes <= 0 || view->pool.memory_bytes > reason.available);
  if (reason.constraint == "memory" && of_host && reason.message.find("spec.unit") == std::string::npos) {
    // The planner knows what a unit has left for parameters, and not of how much.
    words = fmt::format(
        "a stage needs {} for parameters, gradients and optimizer state, which do not fit into a unit of pool {} with "
        "the program and the rows of the training data: it has {} (spec.unit.resources.memory). Raise it, allow more "
        "units (spec.limit, elasticity.maxUnits) so that stages divide the model, or train a smaller model",
        program::SizeText(reason.needed), view->pool.name, program::SizeText(UnitMemory(view->pool)));
  }
  return words;
}

std::string InWords(const std::vector<model::Reason>& reasons, const UsablePools& pools) {
  std::string why;
  for (const model::Reason& reason : reasons) why += (why.empty() ? "" : "; ") + InWords(reason, pools);
  for (const PoolView& view : pools.pools) {
    if (view.only_held.empty() || why.find(view.only_held) != std::string::npos) continue;
    why += fmt::format("{}pool {}: {}", why.empty() ? "" : "; ", view.pool.name, view.only_held);
  }
  return why.empty() ? "the scheduling service found no plan and gave no reason" : why;
}

std::string WaitsFor(const std::vector<model::Reason>& reasons, const UsablePools& pools) {
  constexpr size_t kMostNamed = 5;
  std::string waits;
  for (const model::Reason& reason : reasons) {
    if (reason.constraint != "limit") continue;
    const PoolView* view = pools.Find(reason.resource_type);
    if (view == nullptr || view->held_by_others <= 0) continue;
    if (reason.needed > view->units + view->held_by_others) continue;
    std::vector<std::string> named = view->others;
    if (named.size() > kMostNamed) {
      named.resize(kMostNamed);
      named.push_back(fmt::format("and {} more", view->others.size() - kMostNamed));
    }
    waits += fmt::format("{}{} units of pool {}: {} are in use by {} {}", waits.empty() ? "" : ", or for ",
                         base::Figure(reason.needed), reason.resource_type, view->held_by_others,
                         view->others.size() == 1 ? "job" : "jobs", fmt::join(named, ", "));
  }
  return waits;
}

}  // namespace medley::ops::lifecycle
