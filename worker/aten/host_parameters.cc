// The host owns the parameters: a DenseStore, to whose memory tensors refer.
#include <algorithm>

#include "worker/aten/parameter_store.h"
#include "worker/aten/resident_parameters.h"
#include "worker/model/dense_store.h"
#include "worker/pipeline/dense_values.h"

namespace medley::worker::aten {
namespace {

class HostParameters final : public ParameterStore {
 public:
  HostParameters(const std::vector<ParameterSpec>& specs, const Optimizer& optimizer, uint64_t seed, int kept_updates)
      : store_(specs, optimizer, seed, kept_updates), touched_(specs.size(), false) {}

  at::Tensor Values(int64_t version, size_t parameter, at::IntArrayRef sizes) override {
    return Over(store_.WeightsOf(version, parameter), sizes);
  }

  void BeginGradients(int64_t step) override {
    if (step == gradient_step_) return;
    std::fill(touched_.begin(), touched_.end(), false);
    gradient_step_ = step;
  }
  void AddGradient(size_t parameter, const at::Tensor& gradient, float factor) override {
    const at::Tensor sum = Over(store_.Gradient(parameter), gradient.sizes());
    if (!touched_[parameter]) sum.zero_();
    sum.add_(gradient, factor);
    touched_[parameter] = true;
  }
  void ForgetGradients(int64_t step) override {
    if (step <= gradient_step_) gradient_step_ = kNoStep;
  }
  absl::StatusOr<std::span<float>> GradientsOnHost() override {
    Complete();
    return store_.Gradients();
  }

  std::vector<DenseParameter> Parameters() override { return store_.Parameters(); }
  absl::Status Read(size_t parameter, DensePart part, size_t first, std::span<float> to) override {
    Complete();
    ReadHost(store_.Parameters().at(parameter), part, first, to);
    return absl::OkStatus();
  }
  absl::Status Write(size_t parameter, DensePart part, size_t first, std::span<const float> from) override {
    Complete();
    WriteHost(store_.Parameters().at(parameter), part, first, from);
    return absl::OkStatus();
  }
  absl::StatusOr<double> SquaredNorm() override {
    Complete();
    return SquaredNormOnHost(store_.Parameters());
  }
  absl::Status ScaleGradients(float factor) override {
    Complete();
    ScaleGradientsOnHost(store_.Parameters(), factor);
    return absl::OkStatus();
  }
  absl::Status SumCopies(std::string_view name) override {
    Complete();
    return SumCopiesOnHost(store_.Parameters(), name);
  }

  absl::Status ApplyUpdate(const Optimizer& optimizer) override {
    Complete();
    store_.ApplyUpdate(optimizer);
    return absl::OkStatus();
  }
  int64_t applied_step() const override { return store_.applied_step(); }
  int64_t undo_limit() const override { return store_.undo_limit(); }
  int64_t agreed_step() const override { return store_.agreed_step(); }
  absl::Status KeepAgreed() override {
    store_.KeepAgreed();
    return absl::OkStatus();
  }
  void ForgetAgreed() override { store_.ForgetAgreed(); }
  absl::Status UndoTo(int64_t step) override { return store_.UndoTo(step); }
  void SetAppliedStep(int64_t step) override { store_.SetAppliedStep(step); }

 private:
  static constexpr int64_t kNoStep = -1;

  // A parameter that no pass has used has a gradient of zeros.
  void Complete() {
    for (size_t i = 0; i < touched_.size(); ++i) {
      if (!touched_[i]) std::ranges::fill(store_.Gradient(i), 0.0F);
      touched_[i] = true;
    }
  }

  DenseStore store_;
  int64_t gradient_step_ = kNoStep;
  std::vector<bool> touched_;  // by parameter: its gradient belongs to gradient_step_
};

}  // namespace

std::unique_ptr<ParameterStore> MakeParameterStore(const std::vector<ParameterSpec>& specs, const Optimizer& optimizer,
                                                   uint64_t seed, int kept_updates, const Place& place) {
  if (place.apart()) return MakeResidentParameters(specs, optimizer, seed, kept_updates, place);
  return std::make_unique<HostParameters>(specs, optimizer, seed, kept_updates);
}

}  // namespace medley::worker::aten
