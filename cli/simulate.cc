// medley simulate FILE: times a plan without machines, and writes its timeline.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/program_input.h"
#include "cli/table.h"
#include "common/base/file.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/program/compile.h"
#include "common/program/memory.h"
#include "common/program/text.h"
#include "scheduler-service/simulate/from_profile.h"
#include "scheduler-service/simulate/rank.h"
#include "scheduler-service/simulate/simulate.h"
#include "scheduler-service/simulate/timeline.h"

namespace medley::cli {
namespace {

using base::FormatDecimal;

constexpr int64_t kMaxSpans = 200'000;

struct SimulateFlags {
  PlanFlags plan;
  int batch = 0;
  int steps = 10;
  bool rank = false;
  std::string trace;
  std::string svg;
};

struct Simulated {
  program::Program program;
  sched::Simulation simulation;
  std::vector<program::DeviceMemory> memory;  // by device
  int samples = 0;
};

absl::StatusOr<Simulated> Compute(const SimulateFlags& flags, ProgramInput& input) {
  Simulated out;
  out.samples = flags.batch > 0 ? flags.batch : input.profile.profile_batch_size;
  if (flags.rank) {
    MEDLEY_ASSIGN_OR_RETURN(input.plan.order, sched::RankOrder(input.plan, input.profile, out.samples));
  }
  MEDLEY_ASSIGN_OR_RETURN(out.program, program::Compile(input.plan, input.profile.model));
  MEDLEY_ASSIGN_OR_RETURN(const sched::Durations durations,
                          sched::DurationsFromProfile(out.program, input.profile, out.samples));
  sched::SimulationOptions options{.samples = out.samples, .steps = flags.steps};
  if (!flags.trace.empty() || !flags.svg.empty()) {
    options.max_spans = kMaxSpans;
    options.first_span_step = std::max(0, flags.steps - 3);  // the last three steps: all are alike by then
  }
  MEDLEY_ASSIGN_OR_RETURN(out.simulation, sched::Simulate(out.program, durations, options));
  out.memory = program::CountMemory(out.program, input.profile.model,
                                    {out.samples, input.profile.state_factor, input.plan.schedule.without_undo});
  return out;
}

double BusyShare(const Simulated& simulated, size_t device) {
  const double total = simulated.simulation.total_seconds;
  return total > 0 ? simulated.simulation.busy[device] / total : 0;
}

void PrintSimulated(const Simulated& simulated) {
  const double seconds = simulated.simulation.seconds_per_step;
  std::printf("step         %s s\n", FormatDecimal(seconds, 6).c_str());
  if (seconds > 0) std::printf("throughput   %s samples/s\n", FormatDecimal(simulated.samples / seconds, 1).c_str());
  std::printf("program      %s, %zu instructions a step\n\n", program::Hash(simulated.program).c_str(),
              simulated.program.instructions.size());
  Table table({"DEVICES", "POOL", "COMPUTES", "MEMORY MIB", "MOST OF IT"});
  std::vector<std::string> last;  // the row of the devices before, without their names
  std::string first, end;
  const auto add = [&] {
    if (last.empty()) return;
    std::vector<std::string> row = last;
    row.insert(row.begin(), first == end ? first : first + ".." + end);
    table.Add(row);
  };
  for (size_t d = 0; d < simulated.program.devices.size(); ++d) {  // devices that are alike have one row
    const program::Device& device = simulated.program.devices[d];
    const program::DeviceMemory& memory = simulated.memory[d];
    std::vector<std::string> row = {device.pool, fmt::format("{:.0f} %", 100 * BusyShare(simulated, d)),
                                    FormatDecimal(memory.peak / (1 << 20), 1),
                                    memory.holders.empty() ? "" : memory.holders.front().name};
    if (row != last) {
      add();
      last = std::move(row);
      first = device.id;
    }
    end = device.id;
  }
  add();
  std::fputs(table.Text().c_str(), stdout);
}

void PrintSimulatedJson(const Simulated& simulated) {
  nlohmann::ordered_json out;
  const double seconds = simulated.simulation.seconds_per_step;
  out["secondsPerStep"] = seconds;
  if (seconds > 0) out["throughput"] = simulated.samples / seconds;
  out["samples"] = simulated.samples;
  out["program"] = program::Hash(simulated.program);
  out["instructions"] = simulated.program.instructions.size();
  out["stepEnds"] = simulated.simulation.step_end;
  for (size_t d = 0; d < simulated.program.devices.size(); ++d) {
    const program::Device& device = simulated.program.devices[d];
    nlohmann::ordered_json holders = nlohmann::ordered_json::array();
    for (const program::Holder& holder : simulated.memory[d].holders) {
      holders.push_back({{"name", holder.name}, {"bytes", holder.bytes}});
    }
    out["devices"].push_back({{"id", device.id},
                              {"pool", device.pool},
                              {"computes", BusyShare(simulated, d)},
                              {"memoryBytes", simulated.memory[d].peak},
                              {"holders", holders}});
  }
  std::printf("%s\n", out.dump(2).c_str());
}

absl::Status RunSimulate(const SimulateFlags& flags) {
  MEDLEY_ASSIGN_OR_RETURN(ProgramInput input, ReadProgramInput(flags.plan));
  const auto simulated = Compute(flags, input);
  if (!simulated.ok()) return base::Annotate(simulated.status(), flags.plan.file);
  if (!flags.trace.empty()) {
    const std::string trace = sched::ChromeTrace(simulated->program, simulated->simulation, input.names);
    MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(flags.trace, trace));
  }
  if (!flags.svg.empty()) {
    const std::string svg = sched::TimelineSvg(simulated->program, simulated->simulation, input.names);
    MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(flags.svg, svg));
  }
  if (simulated->simulation.spans_left_out) {
    std::fprintf(stderr, "medley simulate: the timeline has only the first %lld instructions\n",
                 static_cast<long long>(kMaxSpans));
  }
  if (flags.plan.output == "json") {
    PrintSimulatedJson(*simulated);
  } else {
    PrintSimulated(*simulated);
  }
  return absl::OkStatus();
}

}  // namespace

void AddSimulate(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("simulate", "Time a plan without machines: seconds a step, use and memory of each device");
  const auto flags = std::make_shared<SimulateFlags>();
  command
      ->add_option("file", flags->plan.file,
                   "file with an execution plan or an answer of the scheduling service, with --profile; or what medley "
                   "plan takes, which is planned first")
      ->required();
  AddPlanFlags(*command, flags->plan);
  command->add_option("--batch", flags->batch, "samples of a step; the profile's batch unless given")
      ->check(CLI::Range(1, 1 << 30));
  command->add_option("--steps", flags->steps, "steps to simulate")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_flag("--rank", flags->rank,
                    "order operations by the longest path that follows each (HeteroG), instead of the plan's schedule");
  command->add_option("--trace", flags->trace, "file to write a Chrome trace to (chrome://tracing, Perfetto)");
  command->add_option("--svg", flags->svg, "file to write a picture of the timeline to");
  command->add_option("-o,--output", flags->plan.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([flags, &exit_status] {
    const absl::Status status = RunSimulate(*flags);
    if (status.ok()) return;
    std::fprintf(stderr, "medley simulate: %s\n", base::Message(status).c_str());
    exit_status = absl::IsFailedPrecondition(status) ? 2 : 1;
  });
}

}  // namespace medley::cli
