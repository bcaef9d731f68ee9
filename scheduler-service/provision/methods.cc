#include "scheduler-service/provision/methods.h"

#include "common/base/status.h"
#include "scheduler-service/provision/exact.h"
#include "scheduler-service/provision/newton.h"
#include "scheduler-service/provision/static_ratio.h"

namespace medley::sched {

const std::vector<ProvisionMethod>& ProvisionMethods() {
  static const std::vector<ProvisionMethod> methods = {
      {"exact", "the cheapest units, found by checking every relevant throughput", &ProvisionExact},
      {"newton", "HeterPS: balanced stages by Newton's method in one unknown, rounded up and repaired",
       &ProvisionNewton},
      {"sta-ratio", "1 GPU card : 6 CPU cores that train and serve parameters",
       [](const Problem& problem, std::vector<StageChoice> stages) {
         return ProvisionStatic(problem, std::move(stages), kStaRatio);
       }},
      {"sta-ps-ratio", "1 GPU card : 6 CPU cores that train : 6 that serve parameters",
       [](const Problem& problem, std::vector<StageChoice> stages) {
         return ProvisionStatic(problem, std::move(stages), kStaPsRatio);
       }}};
  return methods;
}

absl::StatusOr<ProvisionMethod> FindProvisionMethod(std::string_view name) {
  std::string names;
  for (const ProvisionMethod& method : ProvisionMethods()) {
    if (method.name == name || (name.empty() && method.name == "exact")) return method;
    names += (names.empty() ? "" : ", ") + std::string(method.name);
  }
  return base::InvalidArgument("method: '{}' is unknown; known methods: {}", name, names);
}

}  // namespace medley::sched
