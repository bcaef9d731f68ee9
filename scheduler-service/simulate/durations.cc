#include "scheduler-service/simulate/durations.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/model/allreduce.h"

namespace medley::sched {
namespace {

bool Good(double value) { return std::isfinite(value) && value >= 0; }
bool Good(const Linear& value) { return Good(value.fixed) && Good(value.per_sample); }
bool Good(const LinkSpeed& value) { return Good(value.latency_seconds) && Good(value.bytes_per_second); }

absl::Status CheckSize(const char* what, size_t has, size_t needs) {
  if (has == needs) return absl::OkStatus();
  return base::InvalidArgument("durations: {} has {} entries, the program needs {}", what, has, needs);
}

template <typename T>
absl::Status CheckAll(const char* what, const std::vector<T>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!Good(values[i])) return base::InvalidArgument("durations: {}[{}] is negative or not finite", what, i);
  }
  return absl::OkStatus();
}

}  // namespace

const LinkSpeed& Durations::Link(int from, int to) const {
  const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
  if (machine[f] == machine[t] && !links_within_machines) return local;
  return links[static_cast<size_t>(location[f] * locations + location[t])];
}

Durations NoTime(const program::Program& program) {
  Durations out;
  for (const program::Block& block : program.blocks) {
    out.passes.emplace_back(program.layouts[static_cast<size_t>(block.layout)].devices.size());
  }
  out.reductions.assign(program.blocks.size(), 0);
  out.averages.assign(program.blocks.size(), 0);
  const size_t devices = program.devices.size();
  out.load.resize(devices);
  out.copy_bytes_per_second.assign(devices, 0);
  out.location.assign(devices, 0);
  out.links.resize(1);
  out.cores.assign(devices, 0);
  std::map<std::string, int> machines;
  int next = 0;
  for (const program::Device& device : program.devices) {
    if (device.machine.empty()) {
      out.machine.push_back(next++);
      continue;
    }
    const auto [found, added] = machines.try_emplace(device.machine, next);
    if (added) ++next;
    out.machine.push_back(found->second);
  }
  out.card_bytes_per_second.assign(static_cast<size_t>(next), 0);
  return out;
}

absl::Status CheckDurations(const program::Program& program, const Durations& durations) {
  const size_t blocks = program.blocks.size(), devices = program.devices.size();
  MEDLEY_RETURN_IF_ERROR(CheckSize("passes", durations.passes.size(), blocks));
  for (size_t b = 0; b < blocks; ++b) {
    const size_t replicas = program.layouts[static_cast<size_t>(program.blocks[b].layout)].devices.size();
    MEDLEY_RETURN_IF_ERROR(CheckSize("the passes of a block", durations.passes[b].size(), replicas));
    for (const Durations::Passes& passes : durations.passes[b]) {
      if (Good(passes.forward) && Good(passes.backward) && Good(passes.update)) continue;
      return base::InvalidArgument("durations: the passes of block {} are negative or not finite", b);
    }
  }
  MEDLEY_RETURN_IF_ERROR(CheckSize("reductions", durations.reductions.size(), blocks));
  MEDLEY_RETURN_IF_ERROR(CheckSize("averages", durations.averages.size(), blocks));
  if (!durations.shares.empty()) {
    MEDLEY_RETURN_IF_ERROR(CheckSize("shares", durations.shares.size(), program.shared.size()));
  }
  MEDLEY_RETURN_IF_ERROR(CheckAll("shares", durations.shares));
  MEDLEY_RETURN_IF_ERROR(CheckSize("load", durations.load.size(), devices));
  MEDLEY_RETURN_IF_ERROR(CheckSize("copy_bytes_per_second", durations.copy_bytes_per_second.size(), devices));
  MEDLEY_RETURN_IF_ERROR(CheckSize("location", durations.location.size(), devices));
  MEDLEY_RETURN_IF_ERROR(CheckSize("machine", durations.machine.size(), devices));
  MEDLEY_RETURN_IF_ERROR(CheckSize("cores", durations.cores.size(), devices));
  if (durations.locations < 1 || durations.locations > kMaxLocations) {
    return base::InvalidArgument("durations: {} locations; 1 to {} are possible", durations.locations, kMaxLocations);
  }
  const auto locations = static_cast<size_t>(durations.locations);
  MEDLEY_RETURN_IF_ERROR(CheckSize("links", durations.links.size(), locations * locations));
  if (!durations.flow_bytes_per_second.empty()) {
    MEDLEY_RETURN_IF_ERROR(
        CheckSize("flow_bytes_per_second", durations.flow_bytes_per_second.size(), program.flows.size()));
  }
  if (!durations.reduction_cpu_seconds.empty()) {
    MEDLEY_RETURN_IF_ERROR(CheckSize("reduction_cpu_seconds", durations.reduction_cpu_seconds.size(), blocks));
    for (size_t b = 0; b < blocks; ++b) {
      const std::vector<double>& replicas = durations.reduction_cpu_seconds[b];
      MEDLEY_RETURN_IF_ERROR(
          CheckSize("the reduction_cpu_seconds of a block", replicas.size(), durations.passes[b].size()));
      MEDLEY_RETURN_IF_ERROR(CheckAll("reduction_cpu_seconds", replicas));
    }
  }
  if (!durations.reduction_bytes.empty()) {
    MEDLEY_RETURN_IF_ERROR(CheckSize("reduction_bytes", durations.reduction_bytes.size(), blocks));
  }
  if (!durations.least_step_seconds.empty()) {
    MEDLEY_RETURN_IF_ERROR(CheckSize("least_step_seconds", durations.least_step_seconds.size(), devices));
  }
  for (size_t d = 0; d < devices; ++d) {
    if (durations.location[d] < 0 || durations.location[d] >= durations.locations) {
      return base::InvalidArgument("durations: location[{}] does not exist", d);
    }
    if (durations.machine[d] < 0 || durations.machine[d] >= static_cast<int>(durations.card_bytes_per_second.size())) {
      return base::InvalidArgument("durations: machine[{}] has no network card", d);
    }
  }
  MEDLEY_RETURN_IF_ERROR(CheckAll("reductions", durations.reductions));
  MEDLEY_RETURN_IF_ERROR(CheckAll("averages", durations.averages));
  MEDLEY_RETURN_IF_ERROR(CheckAll("reduction_bytes", durations.reduction_bytes));
  MEDLEY_RETURN_IF_ERROR(CheckAll("least_step_seconds", durations.least_step_seconds));
  MEDLEY_RETURN_IF_ERROR(CheckAll("load", durations.load));
  MEDLEY_RETURN_IF_ERROR(CheckAll("copy_bytes_per_second", durations.copy_bytes_per_second));
  MEDLEY_RETURN_IF_ERROR(CheckAll("links", durations.links));
  MEDLEY_RETURN_IF_ERROR(CheckAll("flow_bytes_per_second", durations.flow_bytes_per_second));
  MEDLEY_RETURN_IF_ERROR(CheckAll("card_bytes_per_second", durations.card_bytes_per_second));
  MEDLEY_RETURN_IF_ERROR(CheckAll("cores", durations.cores));
  for (const auto& [table, rows] : durations.rows) {
    if (Good(rows.pull) && Good(rows.push) && Good(rows.update) && Good(rows.processor)) continue;
    return base::InvalidArgument("durations: the rows of operation {} are negative or not finite", table);
  }
  if (!durations.message_cpu.empty())
    MEDLEY_RETURN_IF_ERROR(CheckSize("message_cpu", durations.message_cpu.size(), devices));
  for (const Durations::MessageCpu& cost : durations.message_cpu) {
    if (Good(cost.per_message) && Good(cost.per_byte)) continue;
    return base::InvalidArgument("durations: the processor time of a message is negative or not finite");
  }
  if (!Good(durations.local)) return base::InvalidArgument("durations: the local link is negative or not finite");
  if (!durations.quotas.empty()) MEDLEY_RETURN_IF_ERROR(CheckSize("quotas", durations.quotas.size(), devices));
  for (size_t d = 0; d < durations.quotas.size(); ++d) {
    const Durations::Quota& quota = durations.quotas[d];
    const bool ordered = quota.period == 0 || (quota.seconds > 0 && quota.seconds <= quota.period);
    if (Good(quota.period) && Good(quota.seconds) && Good(quota.phase) && ordered) continue;
    return base::InvalidArgument("durations: the quota of device {} is not between 0 and its period", d);
  }
  return absl::OkStatus();
}

double ReductionSeconds(const program::Program& program, const program::Group& group, const Durations& durations,
                        double bytes) {
  const std::vector<int>& devices = program.layouts[static_cast<size_t>(group.layout)].devices;
  const auto link = [&](int a, int b) {
    return durations.Link(devices[static_cast<size_t>(a)], devices[static_cast<size_t>(b)]);
  };
  if (group.served) return model::ServedSeconds(static_cast<int>(devices.size()), link, bytes, group.root);
  return model::HierarchicalSeconds(group.levels, link, bytes, group.root);
}

}  // namespace medley::sched
