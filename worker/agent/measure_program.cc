#include "worker/agent/measure_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/scaling_curve.h"
#include "worker/agent/process_use.h"
#include "worker/agent/program_run.h"
#include "worker/agent/ranks.h"

namespace medley::worker {
namespace {

constexpr int64_t kWarmUpSteps = 2;  // after the first report, that are not timed
constexpr int64_t kLeastSteps = 3;   // that are timed
constexpr int64_t kManySteps = 30;   // enough, if they took kLeastSeconds and kLeastPeriods
constexpr double kLeastSeconds = 0.5;
constexpr double kLeastPeriods = 40;     // of a limit of processor time: a step may take none or nearly all of one
constexpr double kMostSeconds = 20;      // enough, if kLeastSteps were timed
constexpr double kMostSizeSeconds = 10;  // the same for each further size
constexpr base::seconds kStopGrace{5};
constexpr double kFull = 0.8;        // part of a unit's processors from which on its processes wait for them
constexpr double kWaits = 0.3;       // part of the time from which on waits for processors are what a step takes
constexpr double kMemoryPart = 0.9;  // of the unit, that processes may need

struct Measured {
  TimedRun run;
  int64_t reports = 0;
  int64_t reached = 0;
  double start_seconds = 0;  // until the first report
  ProcessUse use;
};

// Runs `units` times the unit's processes here. Errors: those of ProgramRun, Cancelled.
absl::StatusOr<Measured> Run(const MeasureOptions& options, int units, double most_seconds,
                             const std::function<bool()>& cancelled) {
  model::ProgramSpec program = options.program;
  // Each size begins anew, and needs not divide what another has saved.
  const std::string scratch = units == 1 ? options.scratch : fmt::format("{}/units-{}", options.scratch, units);
  if (std::error_code error; units > 1 && !std::filesystem::create_directories(scratch, error) && error) {
    return base::Internal("creating folder {}: {}", scratch, error.message());
  }
  program.command = WithFolder(std::move(program.command), options.checkpoint_folder, scratch);
  std::string& board = program.progress_tensor_board;
  if (!board.empty()) board = WithFolder({board}, options.checkpoint_folder, scratch).front();
  ProgramPlace place;
  place.processes = options.processes * units;
  place.run_id = "profile";
  MEDLEY_ASSIGN_OR_RETURN(place.master_port, FreePort());
  const base::SteadyTime began = options.clock->Steady();
  MEDLEY_ASSIGN_OR_RETURN(const auto run, ProgramRun::Start(program, place, options.environment, *options.clock));
  // Up to the first report: it says where the program begins.
  MEDLEY_RETURN_IF_ERROR(run->WaitFor(1, false, cancelled));
  Measured measured;
  measured.start_seconds = base::ToSeconds(options.clock->Steady() - began);
  // The last step is not waited for, because the program may take long to end after it.
  const int64_t last = program.steps - 1;
  const int64_t warm = std::min(last, run->reached() + kWarmUpSteps);
  if (warm > run->reached()) MEDLEY_RETURN_IF_ERROR(run->WaitFor(warm, false, cancelled));
  const base::SteadyTime since = options.clock->Steady();
  const int64_t first = run->reached();
  const ProcessUse before = UseOfDescendants(getpid());
  const double least_seconds = std::max(kLeastSeconds, kLeastPeriods * options.cpu_period_seconds);
  double wall = 0;
  while (run->reached() < last) {
    wall = base::ToSeconds(options.clock->Steady() - since);
    const int64_t steps = run->reached() - first;
    if (steps >= kLeastSteps && (wall > most_seconds || (steps >= kManySteps && wall > least_seconds))) break;
    const int64_t reached = run->reached();
    MEDLEY_RETURN_IF_ERROR(run->WaitFor(reached + 1, false, cancelled));
    if (run->reached() == reached) break;  // it has ended, and reports only every so many steps
  }
  wall = base::ToSeconds(options.clock->Steady() - since);
  measured.use = UseOfDescendants(getpid());
  measured.reached = run->reached();
  if (run->Measure().steps == 0) MEDLEY_RETURN_IF_ERROR(run->WaitFor(program.steps, false, cancelled));
  const RunMeasure measure = run->Measure();
  run->Stop(kStopGrace);
  measured.reports = measure.steps;
  if (measure.steps == 0) return measured;
  const int64_t steps = measured.reached - first;
  // Where reports come late, as event files do, only the times in them say how long a step took.
  const bool late = !program.progress_tensor_board.empty() || steps < kLeastSteps;
  measured.run.seconds = late ? measure.median_seconds : wall / static_cast<double>(steps);
  measured.run.spread = measure.spread / std::sqrt(static_cast<double>(measure.steps));
  // Processes that have ended meanwhile count no more.
  const double processor = std::max(0.0, measured.use.processor_seconds - before.processor_seconds);
  if (steps >= kLeastSteps) measured.run.processor_seconds = processor / static_cast<double>(steps);
  if (wall > 0) measured.run.cores = processor / wall;
  if (wall > 0) measured.run.waited = std::max(0.0, measured.use.delay_seconds - before.delay_seconds) / wall;
  return measured;
}

// Why the size is not measured; empty: it is. `left`: seconds.
std::string WhyNot(const MeasureOptions& options, const Measured& one, int units, double left) {
  const double needed = units * (one.start_seconds + static_cast<double>(kLeastSteps) * one.run.seconds);
  if (needed > left) return fmt::format("it would take about {:.0f} s, and {:.0f} s are left for it", needed, left);
  const int64_t bytes = units * one.use.own_bytes + one.use.shared_bytes;
  if (options.memory_bytes > 0 &&
      static_cast<double>(bytes) > kMemoryPart * static_cast<double>(options.memory_bytes)) {
    return fmt::format("its processes would need about {} MiB on one unit, which has {}", bytes >> 20,
                       options.memory_bytes >> 20);
  }
  return "";
}

// One unit, and each further size that can be measured. Errors: Cancelled.
absl::StatusOr<std::vector<model::SizeMeasure>> MeasureSizes(const MeasureOptions& options, const Measured& one) {
  std::vector<model::SizeMeasure> sizes = {{1, one.run.seconds, one.run.spread}};
  const double cores = options.cores > 0 ? options.cores : std::max(1u, std::thread::hardware_concurrency());
  const base::SteadyTime end = options.clock->Steady() + options.sizes_time;
  for (const int units : options.sizes) {
    const double left = base::ToSeconds(end - options.clock->Steady());
    const auto skip = [units](const std::string& why) {
      base::log::Info("the program is not measured as on several units",
                      {{"units", std::to_string(units)}, {"why", why}});
    };
    if (const std::string why = WhyNot(options, one, units, left); !why.empty()) {
      skip(why);
      continue;
    }
    base::log::Info("measuring the processes of several units on this one", {{"units", std::to_string(units)}});
    const auto many = Run(options, units, kMostSizeSeconds, [&] {
      return options.stop.stop_requested() || options.clock->Steady() > end + options.sizes_time;
    });
    if (options.stop.stop_requested()) return base::Cancelled("the measurement was ended");
    const double seconds = many.ok() ? SecondsOnUnits(one.run, many->run, units, cores) : 0;
    if (seconds <= 0) {
      skip(many.ok() ? "it reported too few steps" : base::Message(many.status()));
      continue;
    }
    base::log::Info("measured the program as on several units",
                    {{"units", std::to_string(units)},
                     {"seconds_per_step", fmt::format("{:.4f}", seconds)},
                     {"here", fmt::format("{:.4f}", many->run.seconds)},
                     {"processor_seconds", fmt::format("{:.4f}", many->run.processor_seconds)},
                     {"start_seconds", fmt::format("{:.1f}", many->start_seconds)}});
    sizes.push_back({units, seconds, many->run.spread});
  }
  return sizes;
}

}  // namespace

double SecondsOnUnits(const TimedRun& one, const TimedRun& many, int units, double cores) {
  const bool waited = one.cores * units > kFull * cores || one.waited > kWaits;
  if (!waited) return many.seconds;
  if (one.processor_seconds <= 0) return 0;
  return one.seconds * many.processor_seconds / (units * one.processor_seconds);
}

absl::StatusOr<model::Profile> MeasureProgram(MeasureOptions options) {
  const model::ProgramSpec& program = options.program;
  MEDLEY_ASSIGN_OR_RETURN(const Measured one,
                          Run(options, 1, kMostSeconds, [&options] { return options.stop.stop_requested(); }));
  if (one.reports == 0) {
    return base::InvalidArgument(
        "the program reported only step {}, so the time of a step is unknown: let it report "
        "more often, or train more steps",
        one.reached);
  }
  base::log::Info("measured the program", {{"seconds_per_step", fmt::format("{:.4f}", one.run.seconds)},
                                           {"reports", std::to_string(one.reports)},
                                           {"processor_seconds", fmt::format("{:.4f}", one.run.processor_seconds)},
                                           {"start_seconds", fmt::format("{:.1f}", one.start_seconds)}});
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<model::SizeMeasure> sizes, MeasureSizes(options, one));
  const model::ScalingCurve curve = model::FitScaling(sizes);
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
  numbers.compute_seconds = curve.Seconds(1);
  numbers.compute_parallel = curve.fixed > 0 ? curve.divided / curve.Seconds(1) : 1;
  numbers.sync_seconds = curve.doubling;
  numbers.spread = sizes.size() > 1 ? curve.spread : one.run.spread;
  numbers.origin = "measured";
  numbers.measured_at = base::FormatTime(options.clock->Now());
  return profile;
}

}  // namespace medley::worker
