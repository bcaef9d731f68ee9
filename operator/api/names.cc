#include "operator/api/names.h"

#include <fmt/core.h>

namespace medley::ops {

std::string_view ToString(Role role) {
  switch (role) {
    case Role::kCoordinator:
      return "coordinator";
    case Role::kServer:
      return "server";
    case Role::kTrainer:
      return "trainer";
    case Role::kProfiler:
      return "profiler";
  }
  return "";
}

std::string CoordinatorName(std::string_view job, int64_t term) {
  return term <= 1 ? fmt::format("{}-coordinator", job) : fmt::format("{}-coordinator-{}", job, term);
}
std::string ServerName(std::string_view job, int index) { return fmt::format("{}-server-{}", job, index); }
std::string TrainerName(std::string_view job, int stage, std::string_view pool, int index) {
  return fmt::format("{}-{}-{}-{}", job, stage, pool, index);
}
std::string ProfilerName(std::string_view job, std::string_view pool) {
  return fmt::format("{}-profile-{}", job, pool);
}
std::string SpecConfigMapName(std::string_view job) { return fmt::format("{}-spec", job); }
std::string PlanConfigMapName(std::string_view job) { return fmt::format("{}-plan", job); }
std::string TokenSecretName(std::string_view job, std::string_view fingerprint) {
  return fmt::format("{}-token-{}", job, fingerprint);
}
std::string EarlierTokenSecretName(std::string_view job) { return fmt::format("{}-token", job); }
std::string DisruptionBudgetName(std::string_view job) { return std::string(job); }
std::string PodGroupName(std::string_view job) { return std::string(job); }
std::string ProfileConfigMapName(std::string_view hash, std::string_view pool) {
  return fmt::format("medley-profile-{}-{}", hash, pool);
}

}  // namespace medley::ops
