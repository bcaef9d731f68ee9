#include "common/model/planning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "common/base/status.h"
#include "common/model/checks.h"
#include "common/model/executable.h"
#include "common/model/execution_plan.h"
#include "common/model/link_table.h"
#include "common/model/model.h"
#include "common/model/profile.h"
#include "common/model/resource.h"
#include "common/model/synchronisation.h"

namespace medley::model {
namespace {

constexpr int kMaxLayers = 4096;
constexpr int kMaxResources = 64;
constexpr size_t kMaxAllreduces = 100'000;
constexpr int kMaxUnits = 1'000'000;
constexpr double kMaxBatch = 1e9;  // samples
constexpr double kMinUnitsPerInstance = 1e-6;

absl::Status Fraction(double value, const std::string& path) {
  if (value >= 0 && value <= 1) return absl::OkStatus();
  return base::InvalidArgument("{}: must be in [0, 1], is {}", path, value);
}

absl::Status CheckTables(const TablesOnDevice& tables, const std::string& path) {
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(tables.seconds, path + ".seconds"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(tables.missed_seconds, path + ".missedSeconds"));
  double share = 0;
  for (size_t i = 0; i < tables.cached.size(); ++i) {
    const std::string here = fmt::format("{}.cached[{}]", path, i);
    MEDLEY_RETURN_IF_ERROR(Fraction(tables.cached[i].share, here + ".share"));
    MEDLEY_RETURN_IF_ERROR(Fraction(tables.cached[i].hits, here + ".hits"));
    if (tables.cached[i].share <= share) {
      return base::InvalidArgument("{}.share: must be more than {}, is {}", here, share, tables.cached[i].share);
    }
    share = tables.cached[i].share;
  }
  return absl::OkStatus();
}

absl::Status CheckProfile(const LayerProfile& p, const std::string& path) {
  if (p.resource_type.empty()) return base::InvalidArgument("{}.resourceType: must not be empty", path);
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(p.compute_seconds, path + ".computeSeconds"));
  MEDLEY_RETURN_IF_ERROR(Fraction(p.compute_parallel, path + ".computeParallel"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(p.sync_seconds, path + ".syncSeconds"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(p.transfer_seconds, path + ".transferSeconds"));
  MEDLEY_RETURN_IF_ERROR(Fraction(p.comm_parallel, path + ".commParallel"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(p.server_seconds, path + ".serverSeconds"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(p.spread, path + ".spread"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(p.sync_processor_seconds, path + ".syncProcessorSeconds"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(p.burst_seconds, path + ".burstSeconds"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(p.undivided_seconds, path + ".undividedSeconds"));
  MEDLEY_RETURN_IF_ERROR(Fraction(p.undivided_parallel, path + ".undividedParallel"));
  MEDLEY_RETURN_IF_ERROR(Fraction(p.forward_part, path + ".forwardPart"));
  MEDLEY_RETURN_IF_ERROR(Fraction(p.update_part, path + ".updatePart"));
  if (p.forward_part + p.update_part > 1 + 1e-9) {
    return base::InvalidArgument("{}.updatePart: forwardPart {} and updatePart {} are more than the whole", path,
                                 p.forward_part, p.update_part);
  }
  if (p.tables) MEDLEY_RETURN_IF_ERROR(CheckTables(*p.tables, path + ".tables"));
  return CheckNotNegative(p.activation_bytes, path + ".activationBytes");
}

absl::Status CheckLayer(const Layer& layer, int index, const std::string& path) {
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(layer.input_bytes, path + ".inputBytes"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(layer.output_bytes, path + ".outputBytes"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(layer.weight_bytes, path + ".weightBytes"));
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    if (layer.inputs[i] < -1 || layer.inputs[i] >= index) {
      return base::InvalidArgument("{}.inputs[{}]: must be an earlier operation, or -1 for the batch, is {}", path, i,
                                   layer.inputs[i]);
    }
  }
  if (layer.profiles.empty()) return base::InvalidArgument("{}.profiles: must not be empty", path);
  std::set<std::string> types;
  for (size_t i = 0; i < layer.profiles.size(); ++i) {
    const std::string here = fmt::format("{}.profiles[{}]", path, i);
    MEDLEY_RETURN_IF_ERROR(CheckProfile(layer.profiles[i], here));
    if (!types.insert(layer.profiles[i].resource_type).second) {
      return base::InvalidArgument("{}.resourceType: '{}' appears twice", here, layer.profiles[i].resource_type);
    }
  }
  return absl::OkStatus();
}

// A layer with work on every type it is profiled on bounds the throughput.
bool HasWorkEverywhere(const Layer& layer) {
  for (const LayerProfile& p : layer.profiles) {
    if (!(p.compute_seconds > 0)) return false;
  }
  return true;
}

absl::Status CheckModel(const Model& model) {
  if (model.layers.empty()) return base::InvalidArgument("model.layers: must not be empty");
  if (model.layers.size() > kMaxLayers) {
    return base::InvalidArgument("model.layers: {} layers, at most {} are allowed", model.layers.size(), kMaxLayers);
  }
  bool work = false;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    MEDLEY_RETURN_IF_ERROR(CheckLayer(model.layers[i], static_cast<int>(i), fmt::format("model.layers[{}]", i)));
    work = work || HasWorkEverywhere(model.layers[i]);
  }
  if (!work) {
    return base::InvalidArgument(
        "model.layers: some layer must have computeSeconds > 0 on every type it is profiled on, "
        "otherwise throughput has no bound");
  }
  return absl::OkStatus();
}

absl::Status CheckTraining(const Training& t, bool needs_samples = true) {
  MEDLEY_RETURN_IF_ERROR(CheckPositive(t.profile_batch_size, "training.profileBatchSize"));
  MEDLEY_RETURN_IF_ERROR(CheckAtMost(t.profile_batch_size, kMaxBatch, "training.profileBatchSize"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(t.samples_per_epoch, "training.samplesPerEpoch"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(t.epochs, "training.epochs"));
  MEDLEY_RETURN_IF_ERROR(CheckPositive(t.state_factor, "training.stateFactor"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(t.remaining_samples, "training.remainingSamples"));
  if (needs_samples && (!(t.TotalSamples() > 0) || !std::isfinite(t.TotalSamples()))) {
    return base::InvalidArgument(
        "training.samplesPerEpoch: samplesPerEpoch * epochs (or remainingSamples) must be greater "
        "than 0");
  }
  if (t.micro_batches < 0) return base::InvalidArgument("training.microBatches: must not be negative");
  return absl::OkStatus();
}

absl::Status CheckConstraints(const Constraints& c) {
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(c.min_throughput, "constraints.minThroughput"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(c.max_cost_per_hour, "constraints.maxCostPerHour"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(c.deadline_seconds, "constraints.deadlineSeconds"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(c.budget_usd, "constraints.budgetUsd"));
  if (c.min_units < 1) return base::InvalidArgument("constraints.minUnits: must be at least 1, is {}", c.min_units);
  if (c.max_units < 0) return base::InvalidArgument("constraints.maxUnits: must not be negative");
  return absl::OkStatus();
}

// What messages cost the processor: of a Resource or a Link.
template <class T>
absl::Status CheckMessages(const T& of, const std::string& path) {
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(of.processor_seconds_per_message, path + ".processorSecondsPerMessage"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(of.processor_seconds_per_byte, path + ".processorSecondsPerByte"));
  MEDLEY_RETURN_IF_ERROR(
      CheckNotNegative(of.processor_seconds_per_message_in_a_row, path + ".processorSecondsPerMessageInARow"));
  return CheckNotNegative(of.computed_bytes_per_message, path + ".computedBytesPerMessage");
}

absl::Status CheckResource(const Resource& r, const std::string& path) {
  if (r.name.empty()) return base::InvalidArgument("{}.name: must not be empty", path);
  MEDLEY_RETURN_IF_ERROR(CheckPrice(r.price_per_unit_hour, path + ".pricePerUnitHour"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(r.memory_bytes, path + ".memoryBytes"));
  MEDLEY_RETURN_IF_ERROR(CheckMessages(r, path));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(r.cores, path + ".cores"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(r.cpu_period_seconds, path + ".cpuPeriodSeconds"));
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(r.device_memory_bytes, path + ".deviceMemoryBytes"));
  if (r.limit < 0 || r.limit > kMaxUnits) {
    return base::InvalidArgument("{}.limit: must be in [0, {}], is {}", path, kMaxUnits, r.limit);
  }
  if (r.offering) {
    MEDLEY_RETURN_IF_ERROR(CheckPositive(r.offering->units_per_instance, path + ".offering.unitsPerInstance"));
    if (r.offering->units_per_instance < kMinUnitsPerInstance) {
      return base::InvalidArgument("{}.offering.unitsPerInstance: must be at least {}, is {}", path,
                                   kMinUnitsPerInstance, r.offering->units_per_instance);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLinks(const PlanRequest& request) {
  constexpr size_t kMaxLinks = static_cast<size_t>(kMaxResources) * kMaxResources;
  if (request.links.size() > kMaxLinks) {
    return base::InvalidArgument("links: {} given, at most {} are allowed", request.links.size(), kMaxLinks);
  }
  if (request.on_devices() && !request.links.empty()) {
    return base::InvalidArgument("links: only for plans of stages; those of a cluster are in cluster.links");
  }
  for (size_t i = 0; i < request.links.size(); ++i) {
    const Link& link = request.links[i];
    const std::string path = fmt::format("links[{}]", i);
    MEDLEY_RETURN_IF_ERROR(CheckNotNegative(link.latency_seconds, path + ".latencySeconds"));
    MEDLEY_RETURN_IF_ERROR(CheckNotNegative(link.bytes_per_second, path + ".bytesPerSecond"));
    MEDLEY_RETURN_IF_ERROR(CheckMessages(link, path));
  }
  return absl::OkStatus();
}

absl::Status CheckResources(const PlanRequest& request, std::set<std::string>& names) {
  if (request.resources.empty()) return base::InvalidArgument("resources: must not be empty");
  if (request.resources.size() > kMaxResources) {
    return base::InvalidArgument("resources: {} given, at most {} are allowed", request.resources.size(),
                                 kMaxResources);
  }
  for (size_t i = 0; i < request.resources.size(); ++i) {
    const std::string path = fmt::format("resources[{}]", i);
    MEDLEY_RETURN_IF_ERROR(CheckResource(request.resources[i], path));
    if (!names.insert(request.resources[i].name).second) {
      return base::InvalidArgument("{}.name: '{}' appears twice", path, request.resources[i].name);
    }
  }
  return absl::OkStatus();
}

// The devices of a cluster need the times of all layers, and no servers.
absl::Status CheckCluster(const PlanRequest& request, const std::set<std::string>& names) {
  if (!request.on_devices()) {
    if (request.cluster.links.empty()) return absl::OkStatus();
    return base::InvalidArgument("cluster.devices: must not be empty where there are links");
  }
  std::set<std::string> pools;
  for (size_t d = 0; d < request.cluster.devices.size(); ++d) {
    const std::string& pool = request.cluster.devices[d].pool;
    if (!names.contains(pool)) {
      return base::InvalidArgument("cluster.devices[{}].pool: '{}' is not in resources", d, pool);
    }
    pools.insert(pool);
  }
  for (size_t l = 0; l < request.model.layers.size(); ++l) {
    const Layer& layer = request.model.layers[l];
    for (const std::string& pool : pools) {
      if (NeedsServers(layer, pool)) {
        return base::InvalidArgument(
            "model.layers[{}].profiles: objective OBJECTIVE_STEP_TIME needs a model without parameter servers, and "
            "serverSeconds is above 0 for pool '{}'; OBJECTIVE_TIME without a cluster plans stages with servers",
            l, pool);
      }
      const auto known = [&](const LayerProfile& p) { return p.resource_type == pool; };
      if (std::ranges::any_of(layer.profiles, known)) continue;
      return base::InvalidArgument("model.layers[{}].profiles: none for pool '{}' of the cluster", l, pool);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string Offering::KeyString() const {
  return fmt::format("{}/{}/{}/{}/{}", provider, region, zone, instance_type, capacity_type);
}

bool NeedsServers(const Layer& layer, const std::string& type) {
  for (const LayerProfile& p : layer.profiles) {
    if (p.resource_type == type) return p.server_seconds > 0;
  }
  return false;
}

absl::Status Validate(const Model& model) { return CheckModel(model); }

absl::Status Validate(const Training& training) { return CheckTraining(training); }

absl::Status Validate(const PlanRequest& request) {
  MEDLEY_RETURN_IF_ERROR(CheckModel(request.model));
  // For a step, the seconds are known without the number of samples, and so is what an hour costs.
  const bool needs_samples = !request.on_devices() || request.objective == Objective::kCost ||
                             request.constraints.deadline_seconds > 0 || request.constraints.budget_usd > 0;
  MEDLEY_RETURN_IF_ERROR(CheckTraining(request.training, needs_samples));
  MEDLEY_RETURN_IF_ERROR(CheckConstraints(request.constraints));
  std::set<std::string> names;
  MEDLEY_RETURN_IF_ERROR(CheckResources(request, names));
  MEDLEY_RETURN_IF_ERROR(CheckCluster(request, names));
  MEDLEY_RETURN_IF_ERROR(CheckLinks(request));
  bool needs_servers = false;
  for (size_t i = 0; i < request.model.layers.size(); ++i) {
    const Layer& layer = request.model.layers[i];
    bool usable = false;
    for (const LayerProfile& p : layer.profiles) {
      if (!names.contains(p.resource_type)) continue;
      usable = true;
      needs_servers = needs_servers || p.server_seconds > 0;
    }
    if (!usable) {
      return base::InvalidArgument("model.layers[{}].profiles: no profile has a resource type that is in resources", i);
    }
  }
  if (!request.server_type.empty() && !names.contains(request.server_type)) {
    return base::InvalidArgument("serverType: '{}' is not in resources", request.server_type);
  }
  if (needs_servers && request.server_type.empty()) {
    return base::InvalidArgument("serverType: must be set because some layer has serverSeconds > 0");
  }
  MEDLEY_RETURN_IF_ERROR(CheckNotNegative(request.server_memory_bytes, "serverMemoryBytes"));
  if (request.allreduces.size() > kMaxAllreduces) {
    return base::InvalidArgument("allreduces: {} measurements, at most {} are allowed", request.allreduces.size(),
                                 kMaxAllreduces);
  }
  if (!(request.planner.time_budget_seconds > 0) || !std::isfinite(request.planner.time_budget_seconds)) {
    return base::InvalidArgument("planner.timeBudgetSeconds: must be greater than 0");
  }
  const bool asynchronous = request.planner.schedule == ScheduleKind::kAsync1F1B;
  if (asynchronous && needs_servers) {
    return base::InvalidArgument(
        "planner.schedule: ASYNC_1F1B needs a model without embedding tables on parameter servers, and some layer has "
        "serverSeconds > 0");
  }
  const Synchronisation& sync = request.planner.sync;
  if (sync.mode != SyncMode::kFull && needs_servers) {
    return base::InvalidArgument(
        "planner.sync.mode: replicas that differ need a model without embedding tables on parameter servers, and some "
        "layer has serverSeconds > 0");
  }
  if (!(sync.fraction > 0 && sync.fraction <= 1)) {
    return base::InvalidArgument("planner.sync.fraction: must be greater than 0 and at most 1, is {}", sync.fraction);
  }
  if (!(sync.target_ratio > 0) || !std::isfinite(sync.target_ratio)) {
    return base::InvalidArgument("planner.sync.targetRatio: must be greater than 0, is {}", sync.target_ratio);
  }
  if (sync.detector != AnomalyDetector::kOff) {
    if (sync.anomaly_window < kLeastAnomalyWindow || sync.anomaly_window > kMostAnomalyWindow) {
      return base::InvalidArgument("planner.sync.anomaly.window: must be {} to {} steps, is {}", kLeastAnomalyWindow,
                                   kMostAnomalyWindow, sync.anomaly_window);
    }
    if (!(sync.anomaly_threshold > 0 && sync.anomaly_threshold <= kMostAnomalyThreshold)) {
      return base::InvalidArgument("planner.sync.anomaly.threshold: must be greater than 0 and at most {}, is {}",
                                   kMostAnomalyThreshold, sync.anomaly_threshold);
    }
  }
  if (sync.hierarchy == Grouping::kPool && sync.mode != SyncMode::kFull) {
    return base::InvalidArgument(
        "planner.sync.hierarchy: BY_POOL needs the mode FULL: replicas that differ are all in one pool, so they would "
        "agree in every step");
  }
  if (request.planner.max_staleness < 0 || (request.planner.max_staleness > 0 && !asynchronous)) {
    return base::InvalidArgument("planner.maxStaleness: must be 0, or greater than 0 with ASYNC_1F1B, is {}",
                                 request.planner.max_staleness);
  }
  return absl::OkStatus();
}

Profile ProfileOf(const PlanRequest& request) {
  Profile profile;
  profile.model = request.model;
  profile.profile_batch_size = static_cast<int>(std::clamp(request.training.profile_batch_size, 0.0, 1e9));
  profile.state_factor = request.training.state_factor;
  // The profiler divides the batch as the job does.
  profile.micro_batches = std::max(1, request.training.micro_batches);
  profile.links = request.links;
  for (const Resource& resource : request.resources) {
    if (resource.cores > 0) profile.units.push_back({resource.name, resource.cores, resource.cpu_period_seconds});
    if (resource.processor_seconds_per_message == 0 && resource.processor_seconds_per_byte == 0) continue;
    const auto own = std::ranges::find_if(
        profile.links, [&](const Link& link) { return link.from == resource.name && link.to == resource.name; });
    Link& link = own != profile.links.end() ? *own : profile.links.emplace_back();
    link.from = link.to = resource.name;
    link.processor_seconds_per_message = resource.processor_seconds_per_message;
    link.processor_seconds_per_byte = resource.processor_seconds_per_byte;
    link.processor_seconds_per_message_in_a_row = resource.processor_seconds_per_message_in_a_row;
    link.computed_bytes_per_message = resource.computed_bytes_per_message;
  }
  return profile;
}

}  // namespace medley::model
