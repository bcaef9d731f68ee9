#include "scheduler-service/profile/analytic.h"

#include <algorithm>
#include <cmath>

#include "common/base/status.h"
#include "common/model/model.h"
#include "common/model/planning.h"
#include "common/model/resource.h"
#include "scheduler-service/profile/work.h"

namespace medley::sched {
namespace {

// The share of the peak that real kernels reach. CPU: calibrated with our profiler (docs/design/profiles.md). GPU:
// estimates; the matrix products of these models use a GPU less than the large ones that vendors measure.
constexpr double kCpuProductEfficiency = 0.90;
constexpr double kGpuProductEfficiency = 0.50;
constexpr double kStreamEfficiency = 0.80;  // STREAM relative to peak bandwidth, for CPU and GPU
// Scalar code on a CPU executes one operation per cycle, while the peak counts 64: two vector units with 16 numbers and
// two operations each. A GPU executes it on all lanes, but without fused multiply-add.
constexpr double kCpuScalarShare = 1.0 / 64;
constexpr double kGpuScalarShare = 1.0 / 2;

// Seconds per id on the host, on every machine: finding distinct ids and the positions of rows. Calibrated with our
// profiler.
constexpr double kHostIdSeconds = 10e-9;
// Parameter servers, pull and push together, calibrated with our profiler: seconds per row and per byte of a row, for
// the trainer and for the server's CPU; and a fixed time per step.
constexpr double kClientRowSeconds = 15e-9;
constexpr double kClientByteSeconds = 0.4e-9;
constexpr double kServerRowSeconds = 28e-9;
constexpr double kServerByteSeconds = 1.7e-9;
constexpr double kServerStepSeconds = 60e-6;
// Latency of a message between two processes, including software. Calibrated with our profiler over loopback; the
// network of a data centre adds less than that.
constexpr double kMessageSeconds = 50e-6;

// How often one step reads or writes all weights: the backward pass reads the weights and writes the gradient; Adagrad
// reads weights, gradient and state and writes weights and state.
constexpr double kBackwardWeightPasses = 2;
constexpr double kUpdateWeightPasses = 5;
// How often one step reads or writes a gathered row: forward, it is read and copied; backward, its gradient is read and
// added.
constexpr double kGatherPasses = 4;
constexpr double kKeyBytes = 8;

class Estimator {
 public:
  Estimator(const model::Layer& layer, const LayerWork& work, double cut_bytes, const Hardware& hardware)
      : layer_(layer), work_(work), cut_bytes_(cut_bytes), hardware_(hardware), peak_(Peak()) {}

  model::LayerProfile Profile(const std::string& resource_type, double batch) const {
    model::LayerProfile profile;
    profile.resource_type = resource_type;
    profile.origin = "analytic";
    profile.compute_seconds = Compute(batch);
    profile.compute_parallel = Divides(Compute(0), profile.compute_seconds);
    profile.sync_seconds = Sync(batch);
    profile.transfer_seconds = Transfer(batch);
    profile.comm_parallel = Divides(Sync(0) + Transfer(0), profile.sync_seconds + profile.transfer_seconds);
    profile.server_seconds = layer_.sparse ? Server(batch) : 0;
    profile.activation_bytes = work_.activation_bytes > 0 ? work_.activation_bytes : layer_.output_bytes;
    return profile;
  }

 private:
  static double Divides(double fixed, double whole) { return whole > 0 ? std::clamp(1 - fixed / whole, 0.0, 1.0) : 0; }

  bool IsGpu() const { return hardware_.cls == model::ResourceClass::kGpu; }

  // Operations per second of matrix products in the layer's precision. If the datasheet has no value for this
  // precision, the value for fp32 applies.
  double Peak() const {
    const char* precision = work_.dtype_bytes == 8 ? "fp64" : work_.dtype_bytes == 2 ? "fp16" : "fp32";
    const auto found = hardware_.flops.find(precision);
    const double flops = found != hardware_.flops.end() ? found->second : hardware_.flops.at("fp32");
    return flops * (IsGpu() ? kGpuProductEfficiency : kCpuProductEfficiency);
  }

  double Pass(double flops, double bytes) const {
    return std::max(flops / peak_, bytes / (hardware_.memory_bytes_per_second * kStreamEfficiency));
  }

  double Compute(double batch) const {
    const double weights = layer_.sparse ? 0 : work_.parameters * work_.dtype_bytes;
    const double backward = work_.backward_factor;
    double seconds = Pass(batch * work_.forward_flops, batch * work_.forward_bytes + weights) +
                     Pass(batch * work_.forward_flops * backward,
                          batch * work_.forward_bytes * backward + kBackwardWeightPasses * weights) +
                     Pass(0, kUpdateWeightPasses * weights);
    seconds += Pass(0, batch * kGatherPasses * work_.gathered_bytes) + batch * work_.gathered_rows * kHostIdSeconds;
    seconds +=
        batch * work_.scalar_operations / (hardware_.flops.at("fp32") * (IsGpu() ? kGpuScalarShare : kCpuScalarShare));
    const double launches =
        work_.sequential * (work_.forward_launches + work_.backward_launches) + work_.update_launches;
    return seconds + launches * hardware_.launch_seconds;
  }

  // The expected number of distinct rows if ids are drawn uniformly from the table. This is an upper bound, because
  // real ids repeat more often; the attribute distinctShare corrects it.
  double DistinctRows(double batch) const {
    const double ids = batch * work_.gathered_rows;
    const double rows = RowBytes() > 0 ? work_.parameters * work_.dtype_bytes / RowBytes() : 0;
    return (rows < 1 ? ids : -rows * std::expm1(-ids / rows)) * work_.distinct_share;
  }

  double RowBytes() const { return work_.gathered_rows > 0 ? work_.gathered_bytes / work_.gathered_rows : 0; }

  double Server(double batch) const {
    return DistinctRows(batch) * (kServerRowSeconds + RowBytes() * kServerByteSeconds) + kServerStepSeconds;
  }

  double Sync(double batch) const {
    if (layer_.sparse) {  // the trainer waits for its server
      const double wire = 2 * (kKeyBytes + RowBytes()) / hardware_.network_bytes_per_second;
      return DistinctRows(batch) * (wire + kClientRowSeconds + RowBytes() * kClientByteSeconds) + 2 * kMessageSeconds +
             Server(batch);
    }
    if (work_.parameters <= 0) return 0;
    return 2 * work_.parameters * work_.dtype_bytes / hardware_.network_bytes_per_second + 2 * kMessageSeconds;
  }

  double Transfer(double batch) const {
    if (cut_bytes_ <= 0) return 0;
    return 2 * batch * cut_bytes_ / hardware_.network_bytes_per_second + 2 * kMessageSeconds;
  }

  const model::Layer& layer_;
  const LayerWork& work_;
  const double cut_bytes_;
  const Hardware& hardware_;
  const double peak_;
};

bool HasProfile(const model::Layer& layer, const std::string& type) {
  return std::any_of(layer.profiles.begin(), layer.profiles.end(),
                     [&](const model::LayerProfile& p) { return p.resource_type == type; });
}

// For each layer: the index of the last layer that uses its output; its own index if none does.
std::vector<size_t> LastTakers(const model::Model& model) {
  const bool graph = std::any_of(model.layers.begin(), model.layers.end(),
                                 [](const model::Layer& layer) { return !layer.inputs.empty(); });
  std::vector<size_t> last(model.layers.size());
  for (size_t i = 0; i < model.layers.size(); ++i) {
    last[i] = i;
    const model::Layer& layer = model.layers[i];
    for (const int input : layer.inputs) {
      if (input >= 0 && static_cast<size_t>(input) < i) last[static_cast<size_t>(input)] = i;
    }
    if (i > 0 && layer.inputs.empty() && !(graph && layer.kind == "EMBEDDING")) last[i - 1] = i;
  }
  return last;
}

}  // namespace

std::vector<double> CutBytes(const model::Model& model) {
  const std::vector<size_t> last = LastTakers(model);
  std::vector<double> cut(model.layers.size(), 0);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    for (size_t e = i; e < last[i]; ++e) cut[e] += model.layers[i].output_bytes;
  }
  return cut;
}

absl::Status AddAnalyticProfiles(model::Model& model, const std::string& resource_type, const Hardware& hardware,
                                 double batch) {
  if (!std::isfinite(batch) || batch <= 0) {
    return base::InvalidArgument("profileBatchSize: must be finite and greater than 0, is {}", batch);
  }
  const std::vector<double> cut = CutBytes(model);
  std::vector<model::LayerProfile> made(model.layers.size());
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const auto work = WorkOf(model.layers[i]);
    if (!work.ok()) return base::Annotate(work.status(), fmt::format("model.layers[{}]", i));
    made[i] = Estimator(model.layers[i], *work, cut[i], hardware).Profile(resource_type, batch);
  }
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (!HasProfile(model.layers[i], resource_type)) model.layers[i].profiles.push_back(std::move(made[i]));
  }
  return absl::OkStatus();
}

absl::Status AddAnalyticProfiles(model::PlanRequest& request, const HardwareCatalog& catalog) {
  for (size_t r = 0; r < request.resources.size(); ++r) {
    const model::Resource& resource = request.resources[r];
    if (resource.hardware.empty()) continue;
    const Hardware* hardware = catalog.Find(resource.hardware);
    if (hardware == nullptr) {
      return base::InvalidArgument("resources[{}].hardware: no datasheet is named '{}'; known datasheets: {}", r,
                                   resource.hardware, catalog.Names());
    }
    MEDLEY_RETURN_IF_ERROR(
        AddAnalyticProfiles(request.model, resource.name, *hardware, request.training.profile_batch_size));
  }
  return absl::OkStatus();
}

}  // namespace medley::sched
