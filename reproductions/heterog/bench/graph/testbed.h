// HeteroG's testbed and models, on datasheets: what graph_bench plans for.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "scheduler-service/devices/problem.h"

namespace medley::reproductions::heterog {

// The constants of the roofline: what every GPU reaches of its datasheet beside what is assumed of all GPUs
// (scheduler-service/profile/analytic.cc), seconds of a launch, and what a connection between machines reaches. With
// one efficiency for all, the V100 is 1.0 (launches) to 1.86 times (memory) as fast as a 1080 Ti: Figure 3(b) has 1.1
// to 1.9.
struct Roofline {
  double efficiency = 1;
  double launch_seconds = 1e-5;
  double link_efficiency = 1;
};

// A row of Tables 1 and 4: seconds of a step on 8 and on 12 GPUs.
struct PaperRow {
  std::string model;         // file in examples/graphs, without ".yaml.gz"
  std::array<int, 2> batch;  // by the number of GPUs
  std::array<double, 2> heterog;
  std::array<std::array<double, 2>, 4> baselines;  // EV-PS, EV-AR, CP-PS, CP-AR
};
const std::vector<PaperRow>& PaperRows();
// Those that none of the baselines can hold: model and batch by the number of GPUs; `heterog` has times, `baselines`
// none.
const std::vector<PaperRow>& LargeRows();

// Errors: those of reading a table.
absl::StatusOr<model::Model> ReadGraph(const std::filesystem::path& folder, const std::string& name);

// Two V100, four 1080 Ti and two P100 (Table 2), or four of each (section 6.1), in machines of four and two.
// `asynchronous`: the schedule, with four micro-batches.
absl::StatusOr<sched::DeviceProblem> OnTestbed(const model::Model& model, int batch, bool all, const Roofline& roofline,
                                               bool asynchronous = false);

}  // namespace medley::reproductions::heterog
