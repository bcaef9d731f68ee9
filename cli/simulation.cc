#include "cli/simulation.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <vector>

#include "cli/output_file.h"
#include "cli/table.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "scheduler-service/simulate/timeline.h"

namespace medley::cli {
namespace {

using base::FormatDecimal;

constexpr int64_t kMaxSpans = 200'000;

}  // namespace

absl::StatusOr<sched::PlanSimulation> SimulateInput(const ProgramInput& input, sched::PlanSimulationOptions options,
                                                    const TimelineFiles& files) {
  options.max_spans = files.wanted() ? kMaxSpans : 0;
  std::optional<sched::DeviceLinks> links;
  if (input.links) options.links = &links.emplace(input.links->View());
  return sched::SimulatePlan(input.plan, input.profile, options);
}

std::string DeviceTable(const sched::PlanSimulation& simulated) {
  Table table({"DEVICES", "POOL", "COMPUTES", "MEMORY MIB", "MOST OF IT"});
  std::vector<std::string> last;  // the row of the devices before, without their names
  std::string first, end;
  const auto add = [&] {
    if (last.empty()) return;
    std::vector<std::string> row = last;
    row.insert(row.begin(), first == end ? first : first + ".." + end);
    table.Add(row);
  };
  for (size_t d = 0; d < simulated.program.devices.size(); ++d) {
    const program::Device& device = simulated.program.devices[d];
    const program::DeviceMemory& memory = simulated.memory[d];
    std::vector<std::string> row = {device.pool, fmt::format("{:.0f} %", 100 * simulated.computes(d)),
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
  return table.Text();
}

absl::Status WriteTimeline(const std::string& command, const sched::PlanSimulation& simulated,
                           const ProgramInput& input, const TimelineFiles& files) {
  if (!files.trace.empty()) {
    const std::string trace = sched::ChromeTrace(simulated.program, simulated.simulation, input.names);
    MEDLEY_RETURN_IF_ERROR(WriteOutput(files.trace, trace));
  }
  if (!files.svg.empty()) {
    const std::string svg = sched::TimelineSvg(simulated.program, simulated.simulation, input.names);
    MEDLEY_RETURN_IF_ERROR(WriteOutput(files.svg, svg));
  }
  if (simulated.simulation.spans_left_out) {
    std::fprintf(stderr, "%s: the timeline has only the first %lld instructions\n", command.c_str(),
                 static_cast<long long>(kMaxSpans));
  }
  return absl::OkStatus();
}

}  // namespace medley::cli
