// The common part of the planning commands: options, reading of requests, models and datasheets, offline planning.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/profile/hardware.h"

namespace CLI {
class App;
}

namespace medley::cli {

struct PlanFlags {
  std::string file;      // "-": standard input
  std::string prices;    // price file for resources of the request that have no price
  std::string planner;   // empty: the planner that the file names
  std::string profile;   // profile whose model replaces the file's
  std::string hardware;  // datasheets that replace the built-in ones
  std::string devices;   // file with resources and a cluster: plans for the fewest seconds of a step on them
  int depth = 1;         // with `devices` and a model from PyTorch: how finely it is cut
  std::vector<std::string> options;  // NAME=VALUE, of the planner
  std::string policy;                // trained policy to start from
  std::string save_policy;           // file to write the policy to after planning
  bool inference_only = false;
  std::optional<uint64_t> seed;
  std::string output = "table";
};

// Adds the options of `plan` and `explain`, except the planning request itself.
void AddPlanFlags(CLI::App& command, PlanFlags& flags);

// A planning request in which every resource has its price.
struct PricedRequest {
  model::PlanRequest request;
  sched::PriceOrigin origin;
};

// Reads the request of flags.file and applies the flags. Errors name the file and the field's path.
absl::StatusOr<PricedRequest> ReadPricedRequest(const PlanFlags& flags);

// Applies the flags that change a request: profile, planner, options, seed, policy. Errors: InvalidArgument for an
// option that is not NAME=VALUE.
absl::Status AdjustRequest(const PlanFlags& flags, model::PlanRequest& request);
// Prepares the request as the scheduling service does (scheduler-service/prepare), with the prices of --prices and the
// datasheets of --hardware. `origin` is where prices that the request already has come from.
absl::StatusOr<PricedRequest> WithPrices(const PlanFlags& flags, model::PlanRequest request, sched::PriceOrigin origin);

struct Planned {
  model::PlanRequest request;  // with prices
  model::PlanResult result;
};

// Reads a file of at most 16 MiB; "-": standard input.
absl::StatusOr<std::string> ReadText(const std::string& file);
// Reads a profile. Errors name the file and the field's path.
absl::StatusOr<model::Profile> ReadProfile(const std::string& file);

// Plans the request of flags.file. Errors name the file and the field's path, or the planner.
absl::StatusOr<Planned> PlanFile(const PlanFlags& flags);
// Plans a request. `what` is the prefix of errors.
absl::StatusOr<Planned> PlanPricedRequest(PricedRequest priced, const std::string& what);

// Reads a model with its profiles from a layer table (profile.v1.Model), a profile (profile.v1.Profile) or a planning
// request; its fields decide which one the file is. An archive of torch.export is cut at `depth`. Errors name the file
// and the field's path.
absl::StatusOr<model::Model> ReadModel(const std::string& file, int depth = 1);

// Reads the datasheets of `file`; returns the built-in ones when `file` is empty.
absl::StatusOr<sched::HardwareCatalog> ReadHardware(const std::string& file);

}  // namespace medley::cli
