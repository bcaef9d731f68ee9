// A question about a fixed set of devices, whose plans the simulator judges. Immutable, thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "common/model/device.h"
#include "common/model/link_speed.h"
#include "common/model/link_table.h"
#include "common/model/planning.h"
#include "common/model/profile.h"

namespace medley::sched {

// Seconds of what has no plan.
inline constexpr double kForever = std::numeric_limits<double>::infinity();

class DeviceProblem {
 public:
  // `request`: valid (model::Validate), on devices. Errors: InvalidArgument naming the field: those of
  // LinkTable::Make; a batch below one sample; clipping by the norm of all gradients with an asynchronous schedule.
  static absl::StatusOr<DeviceProblem> Compile(model::PlanRequest request);

  const model::PlanRequest& request() const { return request_; }
  const model::Profile& profile() const { return profile_; }
  int layers() const { return static_cast<int>(profile_.model.layers.size()); }
  int devices() const { return static_cast<int>(request_.cluster.devices.size()); }
  const model::Device& device(int d) const { return request_.cluster.devices[static_cast<size_t>(d)]; }
  const std::map<std::string, int>& index() const { return index_; }  // of a device's id
  // Whose output a layer uses, ascending; without the batch.
  const std::vector<int>& inputs(int layer) const { return inputs_[static_cast<size_t>(layer)]; }
  int samples() const { return profile_.profile_batch_size; }  // of a step
  int micro_batches() const { return std::max(1, request_.training.micro_batches); }
  bool asynchronous() const { return request_.planner.asynchronous(); }

  const model::LinkTable& links() const { return links_; }
  const model::LinkSpeed& Link(int from, int to) const { return links_.Between(from, to); }
  // Seconds a byte of the network card of a device's machine, which all its messages to other machines share in each
  // direction: that of its fastest link. 0: no limit.
  double CardSecondsPerByte(int d) const { return cards_[static_cast<size_t>(d)]; }
  // For a device; 0: no limit.
  double MemoryBytes(int d) const { return memory_[static_cast<size_t>(d)]; }

  double UsdPerHour(int d) const { return prices_[static_cast<size_t>(d)]; }  // of a device; 0: unknown
  // The part of each second in which a CPU quota lets a device compute; 1: always.
  double QuotaPart(int d) const { return quota_parts_[static_cast<size_t>(d)]; }

  // Seconds of layers [first, end) on a device, forward, backward and update, for a share s of the samples of a step:
  // fixed + s * variable. Without waiting for others.
  struct Work {
    double fixed = 0;
    double variable = 0;
    double At(double share) const { return fixed + share * variable; }
  };
  // All layers together are no pipeline, so they compute the samples in one piece instead of in micro-batches.
  Work WorkOf(int first, int end, int d) const {
    if (first == 0 && end == layers()) return whole_[static_cast<size_t>(d)];
    return Between(work_[static_cast<size_t>(d)], first, end);
  }
  // At most what they take in any plan: in micro-batches, or in one piece.
  Work LeastWorkOf(int first, int end, int d) const { return Between(least_[static_cast<size_t>(d)], first, end); }
  // Parameters of layers [first, end), in bytes.
  double WeightBytes(int first, int end) const {
    return weights_[static_cast<size_t>(end)] - weights_[static_cast<size_t>(first)];
  }
  // What layers [first, end) keep on a device from the forward to the backward pass of all samples of a step, in bytes.
  double ActivationBytes(int first, int end, int d) const {
    const std::vector<double>& sums = activations_[static_cast<size_t>(d)];
    return sums[static_cast<size_t>(end)] - sums[static_cast<size_t>(first)];
  }
  // Where the model can be divided into two stages of a pipeline: before layer `cut`, ascending; without 0 and
  // layers(). With an asynchronous schedule only where no value skips what comes between.
  const std::vector<int>& cuts() const { return cuts_; }
  // Bytes of a step that pass a cut forward; the same number of gradient bytes passes it backward.
  double CutBytes(int cut) const { return cut_bytes_[static_cast<size_t>(cut)]; }

 private:
  static Work Between(const std::vector<Work>& sums, int first, int end) {
    const Work &a = sums[static_cast<size_t>(first)], &b = sums[static_cast<size_t>(end)];
    return {b.fixed - a.fixed, b.variable - a.variable};
  }

  model::PlanRequest request_;
  model::Profile profile_;
  std::map<std::string, int> index_;
  std::vector<std::vector<int>> inputs_;
  model::LinkTable links_;
  std::vector<double> memory_, prices_, quota_parts_;  // by device
  std::vector<double> cards_;
  std::vector<std::vector<Work>> work_, least_;   // by device: sums of the layers before
  std::vector<Work> whole_;                       // by device
  std::vector<double> weights_;                   // sums of the layers before
  std::vector<std::vector<double>> activations_;  // by device: sums of the layers before
  std::vector<int> cuts_;
  std::vector<double> cut_bytes_;  // by layer
};

}  // namespace medley::sched
