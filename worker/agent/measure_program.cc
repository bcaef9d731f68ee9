#include "worker/agent/measure_program.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/agent/program_run.h"
#include "worker/agent/ranks.h"

namespace medley::worker {
namespace {

constexpr int64_t kLeastSteps = 3;  // that are timed
constexpr int64_t kMostSteps = 30;
constexpr double kMostSeconds = 20;  // from the first report on, if kLeastSteps were timed
constexpr base::seconds kStopGrace{5};

}  // namespace

absl::StatusOr<model::Profile> MeasureProgram(MeasureOptions options) {
  options.program.command = WithFolder(std::move(options.program.command), options.checkpoint_folder, options.scratch);
  std::string& board = options.program.progress_tensor_board;
  if (!board.empty()) board = WithFolder({board}, options.checkpoint_folder, options.scratch).front();
  const model::ProgramSpec& program = options.program;
  ProgramPlace place;
  place.processes = options.processes;
  place.run_id = "profile";
  MEDLEY_ASSIGN_OR_RETURN(place.master_port, FreePort());
  MEDLEY_ASSIGN_OR_RETURN(const auto run, ProgramRun::Start(program, place, options.environment, *options.clock));
  const auto cancelled = [&options] { return options.stop.stop_requested(); };
  // Up to the first report: it says where the program begins.
  MEDLEY_RETURN_IF_ERROR(run->WaitFor(1, false, cancelled));
  const base::SteadyTime since = options.clock->Steady();
  RunMeasure measure;
  while (measure.steps < kMostSteps && run->reached() < program.steps) {
    const bool enough = base::ToSeconds(options.clock->Steady() - since) > kMostSeconds;
    if (measure.steps >= kLeastSteps && enough) break;
    const int64_t next = std::min(program.steps, run->reached() + 1);
    // A short program may end meanwhile: what it has reported is its profile.
    if (const absl::Status reached = run->WaitFor(next, false, cancelled); !reached.ok()) return reached;
    measure = run->Measure();
  }
  measure = run->Measure();
  run->Stop(kStopGrace);
  if (measure.steps == 0) {
    return base::InvalidArgument(
        "the program reported only step {}, so the time of a step is unknown: let it report "
        "more often, or train more steps",
        run->reached());
  }
  base::log::Info("measured the program", {{"seconds_per_step", fmt::format("{:.4f}", measure.median_seconds)},
                                           {"reports", std::to_string(measure.steps)}});
  model::Profile profile;
  profile.id = options.profile_id;
  profile.profile_batch_size = program.samples_per_step;
  profile.samples_per_epoch = program.steps * program.samples_per_step;
  profile.micro_batches = 1;
  profile.state_factor = 1;
  if (options.cores > 0) profile.units = {{options.pool, options.cores, options.cpu_period_seconds}};
  profile.model.name = "program";
  model::Layer& layer = profile.model.layers.emplace_back();
  layer.name = "program";
  layer.kind = "PROGRAM";
  model::LayerProfile& numbers = layer.profiles.emplace_back();
  numbers.resource_type = options.pool;
  numbers.compute_seconds = measure.median_seconds;
  numbers.compute_parallel = 1;
  numbers.spread = measure.spread;
  numbers.origin = "measured";
  numbers.measured_at = base::FormatTime(options.clock->Now());
  return profile;
}

}  // namespace medley::worker
