// What the planning commands share: options, reading requests, models and datasheets, planning
// offline.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "common/model/planning.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/profile/hardware.h"

namespace CLI {
class App;
}

namespace medley::cli {

struct PlanFlags {
  std::string file;         // "-": standard input
  std::string prices;       // a price file for what the request leaves to the catalog
  std::string planner;      // empty: as the file says
  std::string profile;      // the model of this profile in place of the file's
  std::string hardware;     // datasheets in place of the built-in ones
  std::string policy;       // a trained policy to begin with
  std::string save_policy;  // where to write the policy that planning ended with
  bool inference_only = false;
  std::optional<uint64_t> seed;
  std::string output = "table";
};

// Options of both commands, without the question itself.
void AddPlanFlags(CLI::App& command, PlanFlags& flags);

// The question of a file.
struct Asked {
  model::PlanRequest request;  // with prices
  sched::PriceOrigin origin;
};

// Errors: what is wrong with the file: its name and the field's path.
absl::StatusOr<Asked> AskedByFile(const PlanFlags& flags);

// What the flags change of a request: profile, datasheets, planner, seed, policy.
absl::Status AdjustRequest(const PlanFlags& flags, model::PlanRequest& request);
// With the prices of --prices for resources without one; else those that it has, of `origin`.
absl::StatusOr<Asked> WithPrices(const PlanFlags& flags, model::PlanRequest request, sched::PriceOrigin origin);

struct Planned {
  model::PlanRequest request;  // with prices
  model::PlanResult result;
};

// Errors: what is wrong with the file (its name and the field's path), the planner or the request.
absl::StatusOr<Planned> PlanFile(const PlanFlags& flags);
// `what` begins errors.
absl::StatusOr<Planned> PlanAsked(Asked asked, const std::string& what);

// A model with what profiles it has, from a layer table (profile.v1.Model), a profile
// (profile.v1.Profile) or a planning request. Errors: what is wrong with the file, as the kind that
// its fields tell.
absl::StatusOr<model::Model> ReadModel(const std::string& file);

// The datasheets of `file`; the built-in ones when it is empty.
absl::StatusOr<sched::HardwareCatalog> ReadHardware(const std::string& file);

}  // namespace medley::cli
