// medley simulate FILE: times a plan without machines, and writes its timeline.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/simulate_traces.h"
#include "cli/simulation.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/program/text.h"

namespace medley::cli {
namespace {

using base::FormatDecimal;

struct SimulateFlags {
  PlanFlags plan;
  int batch = 0;
  int steps = sched::kSimulatedSteps;
  bool rank = false;
  TimelineFiles timeline;
  TraceFlags traces;
};

void PrintSimulated(const sched::PlanSimulation& simulated) {
  const double seconds = simulated.simulation.seconds_per_step;
  std::printf("step         %s s\n", FormatDecimal(seconds, 6).c_str());
  if (seconds > 0) std::printf("throughput   %s samples/s\n", FormatDecimal(simulated.throughput(), 1).c_str());
  std::printf("program      %s, %zu instructions a step\n\n", program::Hash(simulated.program).c_str(),
              simulated.program.instructions.size());
  std::fputs(DeviceTable(simulated).c_str(), stdout);
}

void PrintSimulatedJson(const sched::PlanSimulation& simulated) {
  nlohmann::ordered_json out;
  out["secondsPerStep"] = simulated.simulation.seconds_per_step;
  out["throughput"] = simulated.throughput();
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
                              {"computes", simulated.computes(d)},
                              {"memoryBytes", simulated.memory[d].peak},
                              {"holders", holders}});
  }
  std::printf("%s\n", out.dump(2).c_str());
}

absl::Status RunSimulate(SimulateFlags flags) {
  if (!flags.traces.folder.empty()) return SimulateOnTraces(flags.plan, flags.traces);
  MEDLEY_RETURN_IF_ERROR(OpenStandardOutput({&flags.timeline.trace, &flags.timeline.svg}));
  MEDLEY_ASSIGN_OR_RETURN(const ProgramInput input, ReadProgramInput(flags.plan));
  const auto simulated =
      SimulateInput(input, {.samples = flags.batch, .steps = flags.steps, .rank = flags.rank}, flags.timeline);
  if (!simulated.ok()) return base::Annotate(simulated.status(), flags.plan.file);
  MEDLEY_RETURN_IF_ERROR(WriteTimeline("medley simulate", *simulated, input, flags.timeline));
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
  command->add_option("--trace", flags->timeline.trace,
                      "file to write a Chrome trace to (chrome://tracing, Perfetto); -: standard output");
  command->add_option("--svg", flags->timeline.svg, "file to write a picture of the timeline to; -: standard output");
  AddTraceFlags(*command, flags->traces);
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
