#include "reproductions/heterps/provision_methods.h"

#include "reproductions/heterps/newton.h"
#include "reproductions/heterps/static_ratio.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/provision/exact.h"

namespace medley::reproductions::heterps {

const std::vector<ProvisionMethod>& ProvisionMethods() {
  static const std::vector<ProvisionMethod> methods = {
      {"exact", "the cheapest units, found by checking every relevant throughput", &sched::ProvisionExact},
      {"newton", "HeterPS: balanced stages by Newton's method in one unknown, rounded up and repaired",
       &ProvisionNewton},
      {"sta-ratio", "1 GPU card : 6 CPU cores that train and serve parameters",
       [](const sched::Problem& problem, std::vector<sched::StageChoice> stages) {
         return ProvisionStatic(problem, std::move(stages), kStaRatio);
       }},
      {"sta-ps-ratio", "1 GPU card : 6 CPU cores that train : 6 that serve parameters",
       [](const sched::Problem& problem, std::vector<sched::StageChoice> stages) {
         return ProvisionStatic(problem, std::move(stages), kStaPsRatio);
       }}};
  return methods;
}

}  // namespace medley::reproductions::heterps
