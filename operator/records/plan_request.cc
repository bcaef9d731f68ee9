#include "operator/records/plan_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/cluster.h"
#include "common/model/device.h"
#include "common/model/execution_plan.h"
#include "common/model/job_spec.h"
#include "common/model/link_speed.h"
#include "common/model/model.h"
#include "common/model/placement.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "common/model/provisioned_plan.h"
#include "common/model/resource.h"
#include "common/model/synchronisation.h"
#include "operator/records/interruptions.h"

namespace medley::ops {
namespace {

constexpr double kTiny = 1e-6;

double UnitPriceOf(const PoolOffer& offer) {
  return offer.usd_per_unit_hour > 0 ? offer.usd_per_unit_hour : offer.pool->usd_per_unit_hour;
}

double PoolPrice(const PoolOffer& offer) {
  const double price = UnitPriceOf(offer);
  return price > 0 ? price : std::numeric_limits<double>::max();
}

// For all layers on a unit of the pool.
double ComputeSeconds(const model::Model& model, const std::string& pool) {
  double seconds = 0;
  for (const model::Layer& layer : model.layers) {
    for (const model::LayerProfile& profile : layer.profiles) {
      if (profile.resource_type == pool) seconds += profile.compute_seconds;
    }
  }
  return seconds;
}

std::optional<model::LinkSpeed> MeasuredLink(const std::vector<model::Link>& links, const std::string& a,
                                             const std::string& b) {
  for (const model::Link& link : links) {
    if (!(link.bytes_per_second > 0)) continue;
    if ((link.from == a && link.to == b) || (link.from == b && link.to == a)) {
      return model::LinkSpeed{link.latency_seconds, link.bytes_per_second};
    }
  }
  return std::nullopt;
}

model::LinkSpeed LinkOf(const std::vector<model::Link>& links, const std::string& a, const std::string& b) {
  if (const auto measured = MeasuredLink(links, a, b)) return *measured;
  const auto own = MeasuredLink(links, a, a), other = MeasuredLink(links, b, b);
  if (!own || !other) return own ? *own : other.value_or(model::kUnmeasuredLink);
  return {std::max(own->latency_seconds, other->latency_seconds),
          std::min(own->bytes_per_second, other->bytes_per_second)};
}

// For measured seconds.
double CalibrationFactor(double calibration) { return calibration > 0 ? 1 / std::clamp(calibration, 0.05, 20.0) : 1; }

// What messages cost the processor of a unit, as its pool's profiler measured it.
void AddMessageCosts(const std::vector<model::Link>& links, double factor, model::Resource& resource) {
  for (const model::Link& link : links) {
    if (link.from != resource.name || link.to != resource.name) continue;
    resource.processor_seconds_per_message = factor * link.processor_seconds_per_message;
    resource.processor_seconds_per_byte = factor * link.processor_seconds_per_byte;
    resource.processor_seconds_per_message_in_a_row = factor * link.processor_seconds_per_message_in_a_row;
    resource.computed_bytes_per_message = link.computed_bytes_per_message;
  }
}

// The memory of a unit's GPU for a trainer: as the profiler of the pool found it, within what the pool's spec says.
void AddDeviceMemory(const std::vector<model::UnitCpus>& units, const ResourcePool& pool, model::Resource& resource) {
  if (pool.cls != model::ResourceClass::kGpu) return;
  const auto measured = std::ranges::find(units, pool.name, &model::UnitCpus::resource_type);
  if (measured != units.end()) resource.device_memory_bytes = measured->device_memory_bytes;
  if (pool.memory_bytes <= 0) return;
  const double found = resource.device_memory_bytes;
  resource.device_memory_bytes = found > 0 ? std::min(found, pool.memory_bytes) : pool.memory_bytes;
}

// Rows that come and leave, or may be on the disk, are in shards alone. And without checkpoints no later plan could
// move rows from a GPU to shards.
bool KeepsShards(const TrainingJob& job) {
  if (!job.keeps_checkpoints()) return true;
  const auto spec = model::ParseJobSpec(kube::Dump(job.spec));
  return spec.ok() && spec->training.embeddings.has_value();
}

// The CPU limit of a unit that computes on processors: as the profiler of the pool found it, else what the pool's spec
// says.
void AddCpus(const std::vector<model::UnitCpus>& units, const ResourcePool& pool, model::Resource& resource) {
  if (pool.cls != model::ResourceClass::kCpu) return;
  const auto measured = std::ranges::find(units, pool.name, &model::UnitCpus::resource_type);
  if (measured != units.end()) resource.cpu_period_seconds = measured->period_seconds;
  if (measured != units.end() && measured->cores > 0) {
    resource.cores = measured->cores;
    return;
  }
  const auto cpu = pool.unit_resources.find("cpu");
  if (cpu == pool.unit_resources.end()) return;
  const auto cores = base::ParseQuantity(cpu->second);
  if (cores.ok() && *cores > 0) resource.cores = *cores;
}

// True if only plans of stages can run the job: rows of tables are on parameter servers, and slow trainers are left out
// of stages.
bool NeedsStages(const TrainingJob& job, const model::Model& model) {
  if (job.planner.sync.detector != model::AnomalyDetector::kOff) return true;
  return std::ranges::any_of(model.layers, [](const model::Layer& layer) {
    return std::ranges::any_of(layer.profiles, [](const model::LayerProfile& p) { return p.server_seconds > 0; });
  });
}

// The links as the simulator of the request's plans is to see them: slower where what was measured took longer.
std::vector<model::Link> CalibratedLinks(std::vector<model::Link> links, double factor) {
  for (model::Link& link : links) {
    link.latency_seconds *= factor;
    link.bytes_per_second /= factor;
    link.processor_seconds_per_message *= factor;
    link.processor_seconds_per_byte *= factor;
    link.processor_seconds_per_message_in_a_row *= factor;
  }
  return links;
}

// The units that a job may use, as devices. Pools without a profile are left out. Where money is bounded, each pool has
// as many as a plan may have, because the fastest units may be too expensive.
model::Cluster UnitsAsDevices(const model::Profile& profile, std::vector<PoolOffer> offers,
                              const model::Constraints& bounds) {
  const int most_units = bounds.max_units > 0 ? bounds.max_units : model::kMaxClusterDevices;
  const bool money = bounds.max_cost_per_hour > 0 || bounds.budget_usd > 0;
  for (PoolOffer& offer : offers) offer.units = std::min(offer.units, most_units);
  std::erase_if(offers, [&](const PoolOffer& offer) {
    return offer.units <= 0 || ComputeSeconds(profile.model, offer.pool->name) <= 0;
  });
  std::ranges::stable_sort(offers, {},
                           [&](const PoolOffer& offer) { return ComputeSeconds(profile.model, offer.pool->name); });
  model::Cluster cluster;
  auto left =
      static_cast<size_t>(std::clamp(money ? model::kMaxClusterDevices : most_units, 1, model::kMaxClusterDevices));
  std::vector<std::string> pools;
  for (const PoolOffer& offer : offers) {
    for (int unit = 0; unit < offer.units && left > 0; ++unit, --left) {
      if (unit == 0) pools.push_back(offer.pool->name);
      const std::string id = fmt::format("{}/{}", offer.pool->name, unit);
      cluster.devices.push_back({.id = id, .pool = offer.pool->name, .machine = id, .location = offer.zone});
    }
  }
  for (size_t a = 0; a < pools.size(); ++a) {
    for (size_t b = a; b < pools.size(); ++b) {
      const bool alone = std::ranges::count(cluster.devices, pools[a], &model::Device::pool) < 2;
      if (a == b && alone) continue;
      const model::LinkSpeed link = LinkOf(profile.links, pools[a], pools[b]);
      cluster.links.push_back({pools[a], pools[b], link.latency_seconds, link.bytes_per_second});
    }
  }
  return cluster;
}

}  // namespace

void Calibrate(model::Model& model, double calibration) {
  const double factor = CalibrationFactor(calibration);
  if (factor == 1) return;
  for (model::Layer& layer : model.layers) {
    for (model::LayerProfile& profile : layer.profiles) {
      profile.compute_seconds *= factor;
      profile.sync_seconds *= factor;
      profile.transfer_seconds *= factor;
      profile.server_seconds *= factor;
      profile.sync_processor_seconds *= factor;
      profile.burst_seconds *= factor;
      profile.undivided_seconds *= factor;
      if (profile.tables) {
        profile.tables->seconds *= factor;
        profile.tables->missed_seconds *= factor;
      }
      profile.origin = "calibrated";
    }
  }
}

std::string ServerPool(const TrainingJob& job, const std::vector<PoolOffer>& offers) {
  if (!job.server_pool.empty()) return job.server_pool;
  const PoolOffer* best = nullptr;
  for (const PoolOffer& offer : offers) {
    if (offer.pool->cls != model::ResourceClass::kCpu || offer.units <= 0) continue;
    if (best == nullptr || PoolPrice(offer) < PoolPrice(*best)) best = &offer;
  }
  return best != nullptr ? best->pool->name : "";
}

model::PlanRequest BuildPlanRequest(const TrainingJob& job, const model::Profile& profile,
                                    const std::vector<PoolOffer>& offers, const JobProgress& progress) {
  model::PlanRequest request;
  request.model = profile.model;
  Calibrate(request.model, progress.calibration);
  request.profile_id = profile.id;
  request.allreduces = profile.allreduces;
  request.training.profile_batch_size = profile.profile_batch_size;
  request.training.samples_per_epoch = static_cast<double>(profile.samples_per_epoch);
  request.training.epochs = job.epochs;
  request.training.state_factor = profile.state_factor;
  request.training.remaining_samples = progress.remaining_samples;
  request.training.micro_batches = job.micro_batches;
  const Objective& goal = job.objective;
  request.constraints.min_throughput = goal.min_throughput;
  request.constraints.max_cost_per_hour = goal.max_usd_per_hour;
  if (goal.deadline_seconds > 0) {
    request.constraints.deadline_seconds = std::max(kTiny, goal.deadline_seconds - progress.elapsed_seconds);
  }
  if (goal.budget_usd > 0) request.constraints.budget_usd = std::max(kTiny, goal.budget_usd - progress.spent_usd);
  request.constraints.min_units = job.elasticity.min_units;
  request.constraints.max_units = job.elasticity.max_units;
  for (const PoolOffer& offer : offers) {
    model::Resource resource;
    resource.name = offer.pool->name;
    resource.cls = offer.pool->cls;
    resource.price_per_unit_hour = UnitPriceOf(offer);
    resource.limit = std::max(0, offer.units);
    resource.memory_bytes = offer.pool->memory_bytes;
    resource.offering = offer.pool->offering;
    if (resource.offering && !offer.zone.empty()) resource.offering->zone = offer.zone;
    AddCpus(profile.units, *offer.pool, resource);
    if (!KeepsShards(job)) AddDeviceMemory(profile.units, *offer.pool, resource);
    request.resources.push_back(std::move(resource));
  }
  AddInterruptions(job, offers, request);
  request.server_type = ServerPool(job, offers);
  if (request.server_type.empty()) request.server_type = offers.front().pool->name;
  if (job.server_pool.empty()) request.rows = model::RowsPlace::kAny;
  request.simulate = true;
  request.planner = {job.planner.name,          job.seed,        job.planner.time_budget_seconds, job.planner.schedule,
                     job.planner.max_staleness, job.planner.sync};
  const double factor = CalibrationFactor(progress.calibration);
  for (model::Resource& resource : request.resources) AddMessageCosts(profile.links, factor, resource);
  if (goal.least_usd_per_hour) request.objective = model::Objective::kCostPerHour;
  if (goal.fastest) request.objective = model::Objective::kTime;
  if (!goal.fastest || NeedsStages(job, request.model)) {
    request.links = CalibratedLinks(profile.links, factor);
    return request;
  }
  request.objective = model::Objective::kStepTime;
  request.cluster = UnitsAsDevices(profile, offers, request.constraints);
  return request;
}

model::PlanResult WithPrice(model::PlanResult result, const model::PlanRequest& request) {
  if (!result.step_time || !result.execution_plan) return result;
  model::ProvisionedPlan& plan = result.plan.emplace();
  plan.throughput = result.step_time->throughput;
  for (const auto& [pool, units] : model::TrainersByPool(*result.execution_plan)) {
    const auto priced = std::ranges::find(result.resources, pool, &model::Resource::name);
    if (priced != result.resources.end()) plan.cost_per_hour += units * priced->price_per_unit_hour;
  }
  const double remaining = request.training.remaining_samples;
  const double samples = remaining > 0 ? remaining : request.training.TotalSamples();
  plan.execution_seconds = plan.throughput > 0 ? samples / plan.throughput : 0;
  plan.cost_usd = plan.execution_seconds / 3600 * plan.cost_per_hour;
  model::Estimate& estimate = result.execution_plan->estimate;
  estimate.usd_per_hour = plan.cost_per_hour;
  estimate.usd_total = plan.cost_usd;
  estimate.seconds_total = plan.execution_seconds;
  for (const model::StepTimePlan::Alternative& other : result.step_time->alternatives) {
    model::Alternative& shown = result.alternatives.emplace_back();
    shown.label = other.label;
    if (!other.failure.empty()) shown.reasons.push_back({"", "", 0, 0, other.failure});
    if (other.failure.empty() && other.seconds > 0) {
      shown.plan.emplace().throughput = plan.throughput * result.step_time->seconds / other.seconds;
    }
  }
  return result;
}

absl::StatusOr<model::Profile> MergeProfiles(const std::vector<model::Profile>& profiles) {
  if (profiles.empty()) return base::InvalidArgument("merging profiles: the list is empty");
  model::Profile merged = profiles.front();
  for (size_t p = 1; p < profiles.size(); ++p) {
    const model::Profile& other = profiles[p];
    if (other.model.layers.size() != merged.model.layers.size()) {
      return base::InvalidArgument(
          "merging profiles {} and {}: they have {} and {} layers, so they are of different models", merged.id,
          other.id, merged.model.layers.size(), other.model.layers.size());
    }
    for (size_t l = 0; l < other.model.layers.size(); ++l) {
      model::Layer& layer = merged.model.layers[l];
      if (layer.name != other.model.layers[l].name) {
        return base::InvalidArgument(
            "merging profiles {} and {}: layer {} is '{}' and '{}', so they are of different models", merged.id,
            other.id, l, layer.name, other.model.layers[l].name);
      }
      for (const model::LayerProfile& numbers : other.model.layers[l].profiles) layer.profiles.push_back(numbers);
    }
    for (const model::Link& link : other.links) merged.links.push_back(link);
    merged.allreduces.insert(merged.allreduces.end(), other.allreduces.begin(), other.allreduces.end());
    merged.units.insert(merged.units.end(), other.units.begin(), other.units.end());
  }
  return merged;
}

std::vector<std::string> LayerNames(const model::Model& model) {
  std::vector<std::string> names;
  for (const model::Layer& layer : model.layers) names.push_back(layer.name);
  return names;
}

}  // namespace medley::ops
