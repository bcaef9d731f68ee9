// The methods to provision a schedule that the paper compares (section 6.1), by name: that of the service, its own and
// two static ratios.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "scheduler-service/provision/provisioned.h"

namespace medley::reproductions::heterps {

struct ProvisionMethod {
  std::string_view name;
  std::string_view description;
  std::optional<sched::Provisioned> (*provision)(const sched::Problem&, std::vector<sched::StageChoice>);
};

const std::vector<ProvisionMethod>& ProvisionMethods();

}  // namespace medley::reproductions::heterps
