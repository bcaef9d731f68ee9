// The methods to provision a schedule, by name.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string_view>
#include <vector>

#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

struct ProvisionMethod {
  std::string_view name;
  std::string_view description;
  std::optional<Provisioned> (*provision)(const Problem&, std::vector<StageChoice>);
};

const std::vector<ProvisionMethod>& ProvisionMethods();

// An empty name means exact. Errors: InvalidArgument listing the known names.
absl::StatusOr<ProvisionMethod> FindProvisionMethod(std::string_view name);

}  // namespace medley::sched
