#include "operator/lifecycle/limit_advice.h"

#include <fmt/core.h>

#include <string_view>

#include "operator/builders/coordinator_resources.h"

namespace medley::ops::lifecycle {

std::string WithLimitAdvice(std::string words, const std::string& pool, double needed, int limit,
                            const std::string& bound) {
  constexpr std::string_view kAdvice = ": raise the limit of ";
  const size_t advice = words.find(kAdvice);
  const bool is_the_limit = bound.starts_with("spec.limit");
  if (is_the_limit || advice == std::string::npos) return words + fmt::format(" (bounded by {})", bound);
  words.resize(advice);
  words += fmt::format("; bounded by {}", bound);
  if (needed <= limit) {
    words += fmt::format(", not by spec.limit of pool {}, which is {}", pool, limit);
  } else {
    words += fmt::format(", and spec.limit of pool {} is {}", pool, limit);
  }
  if (bound.starts_with("free nodes")) {
    words += fmt::format(
        ": a node has to have room for the units, and one of them besides for the coordinator ({} of CPU, {} of "
        "memory): add nodes, or make spec.unit smaller",
        kCoordinatorCpu, kCoordinatorMemory);
  } else if (bound.starts_with("ResourceQuota")) {
    words += ": raise the quota, or make spec.unit smaller";
  }
  return words;
}

}  // namespace medley::ops::lifecycle
