// What `medley plan` and `medley explain` share: options, reading the request, planning offline.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "common/model/planning.h"

namespace CLI {
class App;
}

namespace medley::cli {

struct PlanFlags {
  std::string file;     // "-": standard input
  std::string prices;   // a price file for what the request leaves to the catalog
  std::string planner;  // empty: as the file says
  std::optional<uint64_t> seed;
  std::string output = "table";
};

// Options of both commands.
void AddPlanFlags(CLI::App& command, PlanFlags& flags);

struct Planned {
  model::PlanRequest request;  // with prices
  model::PlanResult result;
};

// Errors: what is wrong with the file (its name and the field's path), the planner or the request.
absl::StatusOr<Planned> PlanFile(const PlanFlags& flags);

}  // namespace medley::cli
