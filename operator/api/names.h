// The names of the objects that the operator creates for a job. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace medley::ops {

enum class Role { kCoordinator, kServer, kTrainer, kProfiler };
std::string_view ToString(Role role);  // value of label medley.dev/role and of flag --role

// `term`: of the coordinator; the first has no number in its name.
std::string CoordinatorName(std::string_view job, int64_t term = 1);
std::string ServerName(std::string_view job, int index);
std::string TrainerName(std::string_view job, int stage, std::string_view pool, int index);
std::string ProfilerName(std::string_view job, std::string_view pool);
std::string SpecConfigMapName(std::string_view job);
std::string PlanConfigMapName(std::string_view job);
// `fingerprint`: of the credentials (builders/credentials.h); nobody can take the name before the operator does.
std::string TokenSecretName(std::string_view job, std::string_view fingerprint);
// For the Secrets of operators that made random credentials.
std::string EarlierTokenSecretName(std::string_view job);
std::string DisruptionBudgetName(std::string_view job);
std::string PodGroupName(std::string_view job);
// One ConfigMap serves all jobs of the namespace whose profile has this hash.
std::string ProfileConfigMapName(std::string_view hash, std::string_view pool);

}  // namespace medley::ops
