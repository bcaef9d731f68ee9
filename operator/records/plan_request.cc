#include "operator/records/plan_request.h"

#include <algorithm>
#include <limits>

#include "common/base/status.h"

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

}  // namespace

void Calibrate(model::Model& model, double calibration) {
  if (!(calibration > 0) || calibration == 1) return;
  const double factor = 1 / std::clamp(calibration, 0.05, 20.0);
  for (model::Layer& layer : model.layers) {
    for (model::LayerProfile& profile : layer.profiles) {
      profile.compute_seconds *= factor;
      profile.sync_seconds *= factor;
      profile.transfer_seconds *= factor;
      profile.server_seconds *= factor;
      profile.sync_processor_seconds *= factor;
      profile.burst_seconds *= factor;
      profile.undivided_seconds *= factor;
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
    request.resources.push_back(std::move(resource));
  }
  request.server_type = ServerPool(job, offers);
  if (request.server_type.empty()) request.server_type = offers.front().pool->name;
  request.simulate = true;
  request.planner = {job.planner.name,          job.seed,        job.planner.time_budget_seconds, job.planner.schedule,
                     job.planner.max_staleness, job.planner.sync};
  return request;
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
  }
  return merged;
}

std::vector<std::string> LayerNames(const model::Model& model) {
  std::vector<std::string> names;
  for (const model::Layer& layer : model.layers) names.push_back(layer.name);
  return names;
}

}  // namespace medley::ops
