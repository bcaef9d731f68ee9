#include "scheduler-service/devices/problem.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/simulate/from_profile.h"
#include "scheduler-service/simulate/profile_quotas.h"

namespace medley::sched {
namespace {

// For layer i, without -1 for the batch.
std::vector<int> InputsOf(const model::Model& model, int i) {
  const model::Layer& layer = model.layers[static_cast<size_t>(i)];
  std::vector<int> inputs = layer.inputs;
  if (inputs.empty() && i > 0) inputs = {i - 1};
  std::erase(inputs, -1);
  std::ranges::sort(inputs);
  inputs.erase(std::ranges::unique(inputs).begin(), inputs.end());
  return inputs;
}

}  // namespace

absl::StatusOr<DeviceProblem> DeviceProblem::Compile(model::PlanRequest request) {
  DeviceProblem out;
  MEDLEY_ASSIGN_OR_RETURN(out.links_, model::LinkTable::Make(request.cluster));
  if (request.training.profile_batch_size < 1) {
    return base::InvalidArgument("training.profileBatchSize: must be at least 1 sample, is {}",
                                 request.training.profile_batch_size);
  }
  out.request_ = std::move(request);
  out.profile_ = model::ProfileOf(out.request_);
  const model::Model& model = out.profile_.model;
  const int layers = out.layers();
  for (int i = 0; i < layers; ++i) out.inputs_.push_back(InputsOf(model, i));

  const auto parts = QuotaParts(out.profile_);
  for (int d = 0; d < out.devices(); ++d) {
    const model::Device& device = out.device(d);
    out.index_[device.id] = d;
    const auto resource = std::ranges::find(out.request_.resources, device.pool, &model::Resource::name);
    const bool listed = resource != out.request_.resources.end();
    out.memory_.push_back(listed ? resource->memory_bytes : 0);
    out.prices_.push_back(listed ? resource->price_per_unit_hour : 0);
    out.quota_parts_.push_back(parts.contains(device.pool) ? parts.at(device.pool) : 1);
    std::vector<double>& kept = out.activations_.emplace_back(1);
    for (const model::Layer& layer : model.layers) {
      const auto times = std::ranges::find(layer.profiles, device.pool, &model::LayerProfile::resource_type);
      const bool known = times != layer.profiles.end() && times->activation_bytes > 0;
      kept.push_back(kept.back() + (known ? times->activation_bytes : layer.output_bytes) * out.samples());
    }
    std::vector<Work>& sums = out.work_.emplace_back(1);
    std::vector<Work>& least = out.least_.emplace_back(1);
    Work all;
    for (int l = 0; l < layers; ++l) {
      MEDLEY_ASSIGN_OR_RETURN(const double none, ComputeSeconds(out.profile_, parts, l, device.pool, 0, out.samples()));
      MEDLEY_ASSIGN_OR_RETURN(const double whole,
                              ComputeSeconds(out.profile_, parts, l, device.pool, 1, out.samples()));
      // Where a CPU quota holds a unit up, its seconds are those of the long run.
      const double part = out.quota_parts_.back();
      const Work work{none / part, (whole - none) / part};
      const double scale = static_cast<double>(out.samples()) / out.profile_.profile_batch_size;
      const double saved = scale * MicroBatchesCost(out.profile_, l, device.pool, 0);
      const double saved_of_all = scale * MicroBatchesCost(out.profile_, l, device.pool, 1);
      const Work in_one{std::max(0.0, work.fixed - saved), std::max(0.0, work.variable - (saved_of_all - saved))};
      sums.push_back({sums.back().fixed + work.fixed, sums.back().variable + work.variable});
      least.push_back({least.back().fixed + std::min(work.fixed, in_one.fixed),
                       least.back().variable + std::min(work.variable, in_one.variable)});
      all = {all.fixed + in_one.fixed, all.variable + in_one.variable};
    }
    out.whole_.push_back(all);
  }

  for (int a = 0; a < out.devices(); ++a) {
    double fastest = 0;
    for (int b = 0; b < out.devices(); ++b) {
      const std::string& machine = out.device(a).machine;
      if (a == b || (!machine.empty() && machine == out.device(b).machine)) continue;
      fastest = std::max({fastest, out.Link(a, b).bytes_per_second, out.Link(b, a).bytes_per_second});
    }
    out.cards_.push_back(fastest > 0 ? 1 / fastest : 0);
  }

  out.weights_.push_back(0);
  for (const model::Layer& layer : model.layers) out.weights_.push_back(out.weights_.back() + layer.weight_bytes);
  out.cut_bytes_.assign(static_cast<size_t>(layers) + 1, 0);
  std::vector<int> last_use(static_cast<size_t>(layers), -1);
  for (int i = 0; i < layers; ++i) {
    for (const int input : out.inputs(i)) last_use[static_cast<size_t>(input)] = i;
  }
  for (int cut = 1; cut < layers; ++cut) {
    for (int i = 0; i < cut; ++i) {
      if (last_use[static_cast<size_t>(i)] < cut) continue;
      out.cut_bytes_[static_cast<size_t>(cut)] += model.layers[static_cast<size_t>(i)].output_bytes * out.samples();
    }
    out.cuts_.push_back(cut);
  }
  // A value may cross only one cut of an asynchronous pipeline, so a cut is legal where one value crosses, the output
  // of the layer before it: whatever other cuts are chosen, it ends in the next stage, unless it is used later too.
  if (out.asynchronous()) {
    std::erase_if(out.cuts_, [&](int cut) {
      for (int i = 0; i < cut - 1; ++i) {
        if (last_use[static_cast<size_t>(i)] >= cut) return true;
      }
      return false;
    });
  }
  return out;
}

}  // namespace medley::sched
