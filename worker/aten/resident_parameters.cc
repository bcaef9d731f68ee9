#include "worker/aten/resident_parameters.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "common/base/status.h"
#include "worker/aten/recorder.h"
#include "worker/aten/resident_update.h"
#include "worker/model/aligned_floats.h"
#include "worker/model/version_ring.h"
#include "worker/params/initialize.h"

namespace medley::worker::aten {
namespace {

constexpr int64_t kNoStep = -1;
constexpr int64_t kAlignment = 64;             // floats: 256 bytes
constexpr int64_t kPiece = int64_t{16} << 20;  // floats that an update or a copy treats at once

// What an update treats alike.
enum Range { kOwned, kCopies, kStatistics, kFrozen, kRanges };

Range RangeOf(const ParameterSpec& spec) {
  if (spec.role == ParameterRole::kStatistic) return kStatistics;
  if (spec.role == ParameterRole::kFrozen) return kFrozen;
  return spec.copy_of >= 0 ? kCopies : kOwned;
}

struct Version {
  at::Tensor weights;
  std::array<at::Tensor, 2> state;  // as many as the optimizer has floats for each weight
};

class ResidentParameters final : public ParameterStore {
 public:
  ResidentParameters(const std::vector<ParameterSpec>& specs, const Optimizer& optimizer, uint64_t seed,
                     int kept_updates, const Place& place)
      : specs_(specs),
        place_(place),
        state_floats_(StateFloats(optimizer.kind)),
        versions_(kept_updates),
        recorder_(place, "updates") {
    const at::AutoGradMode none(false);
    offsets_.resize(specs_.size());
    for (int range = 0; range < kRanges; ++range) {
      begins_[static_cast<size_t>(range)] = size_;
      for (size_t p = 0; p < specs_.size(); ++p) {
        if (RangeOf(specs_[p]) != range) continue;
        offsets_[p] = size_;
        size_ += (specs_[p].Size() + kAlignment - 1) / kAlignment * kAlignment;
      }
    }
    begins_[kRanges] = size_;
    for (Version& version : versions_.versions()) {
      version.weights = at::zeros({size_}, place_.Floats());
      for (size_t s = 0; s < state_floats_; ++s) version.state[s] = at::zeros({size_}, place_.Floats());
    }
    sums_ = at::zeros({size_}, place_.Floats());
    for (at::Tensor& scratch : scratch_) scratch = at::empty({std::min(begins_[kStatistics], kPiece)}, place_.Floats());
    if (optimizer.initial_state != 0) {
      for (size_t s = 0; s < state_floats_; ++s) Latest().state[s].fill_(optimizer.initial_state);
    }
    for (size_t p = 0; p < specs_.size() && begun_.ok(); ++p) {
      if (specs_[p].initializer == Initializer::kStored) continue;
      std::vector<float> values(static_cast<size_t>(specs_[p].Size()));
      Initialize(specs_[p], seed, values);
      begun_ = Write(p, DensePart::kWeights, 0, values);
    }
  }

  at::Tensor Values(int64_t version, size_t parameter, at::IntArrayRef sizes) override {
    MEDLEY_CHECK(versions_.Has(version), "this version of the parameters is not kept");
    return Of(versions_.At(version).weights, parameter).view(sizes);
  }

  void BeginGradients(int64_t step) override {
    if (step == gradient_step_) return;
    sums_.zero_();
    on_host_ = false;
    gradient_step_ = step;
  }
  void AddGradient(size_t parameter, const at::Tensor& gradient, float factor) override {
    Of(sums_, parameter).view(gradient.sizes()).add_(gradient, factor);
  }
  void ForgetGradients(int64_t step) override {
    if (step <= gradient_step_) gradient_step_ = kNoStep;
  }
  absl::StatusOr<std::span<float>> GradientsOnHost() override {
    const size_t all = std::accumulate(specs_.begin(), specs_.end(), size_t{0}, [](size_t sum, const auto& spec) {
      return sum + static_cast<size_t>(spec.Size());
    });
    const at::AutoGradMode none(false);
    host_.Grow(all);
    const std::span<float> host = host_.First(all);
    if (on_host_) return host;
    MEDLEY_RETURN_IF_ERROR(ForEachGroup([&](size_t first, size_t end, size_t at, int64_t floats) -> absl::Status {
      std::vector<at::Tensor> parts;
      for (size_t p = first; p < end; ++p) parts.push_back(Of(sums_, p));
      return place_.CopyOut(parts.size() == 1 ? parts.front() : at::cat(parts),
                            host.subspan(at, static_cast<size_t>(floats)));
    }));
    on_host_ = true;
    return host;
  }

  // Their values are not on the host.
  std::vector<DenseParameter> Parameters() override {
    std::vector<DenseParameter> parameters;
    for (const ParameterSpec& spec : specs_)
      parameters.push_back({.spec = spec, .weights = {}, .state = {}, .gradient = {}});
    return parameters;
  }

  absl::Status Read(size_t parameter, DensePart part, size_t first, std::span<float> to) override {
    MEDLEY_RETURN_IF_ERROR(begun_);
    return ForEachPart(parameter, part, first, to.size(), [&](const at::Tensor& values, size_t at, size_t count) {
      return place_.CopyOut(values, to.subspan(at, count));
    });
  }
  absl::Status Write(size_t parameter, DensePart part, size_t first, std::span<const float> from) override {
    MEDLEY_RETURN_IF_ERROR(begun_);
    return ForEachPart(parameter, part, first, from.size(), [&](const at::Tensor& values, size_t at, size_t count) {
      return place_.CopyIn(from.subspan(at, count), values);
    });
  }

  absl::StatusOr<double> SquaredNorm() override {
    const at::AutoGradMode none(false);
    MEDLEY_RETURN_IF_ERROR(TakeBack());
    at::Tensor squares = at::zeros({}, place_.Floats().dtype(at::kDouble));
    for (int64_t at = 0; at < begins_[kCopies]; at += kPiece) {
      const int64_t count = std::min(kPiece, begins_[kCopies] - at);
      const at::Tensor piece = sums_.narrow(0, at, count);
      at::Tensor scratch = scratch_[0].narrow(0, 0, count);
      squares.add_(at::mul_out(scratch, piece, piece).sum(at::kDouble));
    }
    MEDLEY_ASSIGN_OR_RETURN(const at::Tensor host, place_.ToHost(squares));
    return host.item<double>();
  }
  absl::Status ScaleGradients(float factor) override {
    const at::AutoGradMode none(false);
    MEDLEY_RETURN_IF_ERROR(TakeBack());
    sums_.narrow(0, 0, begins_[kStatistics]).mul_(factor);
    return absl::OkStatus();
  }
  absl::Status SumCopies(std::string_view name) override {
    const at::AutoGradMode none(false);
    MEDLEY_RETURN_IF_ERROR(TakeBack());
    std::vector<at::Tensor> gradients;
    for (size_t p = 0; p < specs_.size(); ++p) {
      if (specs_[p].name == name) gradients.push_back(Of(sums_, p));
    }
    if (gradients.empty()) return base::Internal("no block of this device has the shared parameter '{}'", name);
    for (size_t g = 1; g < gradients.size(); ++g) gradients.front().add_(gradients[g]);
    for (size_t g = 1; g < gradients.size(); ++g) gradients[g].copy_(gradients.front());
    return absl::OkStatus();
  }

  absl::Status ApplyUpdate(const Optimizer& optimizer) override {
    const at::AutoGradMode none(false);
    MEDLEY_RETURN_IF_ERROR(begun_);
    MEDLEY_RETURN_IF_ERROR(TakeBack());
    const Version &from = Latest(), &to = versions_.Next();
    factors_.Set(optimizer, place_.Floats());
    Recorder::Key key = FixedFactorsOf(optimizer);
    for (const Version* version : {&from, &to}) {
      for (const at::Tensor* each : {&version->weights, &version->state[0], &version->state[1]}) {
        key.push_back(AddressOf(*each));
      }
    }
    key.push_back(AddressOf(sums_));
    const auto update = [&] {
      Update(optimizer, from, to);
      return absl::OkStatus();
    };
    if (size_ > 0) MEDLEY_RETURN_IF_ERROR(recorder_.Do(key, update));
    versions_.Advance();
    return absl::OkStatus();
  }
  RecordingCounts Recordings() const override { return recorder_.counts(); }
  std::vector<uint64_t> Addresses(int64_t version) const override {
    MEDLEY_CHECK(versions_.Has(version), "this version of the parameters is not kept");
    return {AddressOf(versions_.At(version).weights), AddressOf(sums_)};
  }

  int64_t applied_step() const override { return versions_.step(); }
  int64_t undo_limit() const override { return size_ == 0 ? 0 : versions_.undo_limit(); }
  int64_t agreed_step() const override { return versions_.agreed_step(); }
  absl::Status KeepAgreed() override {
    return versions_.KeepAgreed([this](const Version& from, Version& to) { return Copy(from, to); });
  }
  void ForgetAgreed() override { versions_.ForgetAgreed(); }
  absl::Status UndoTo(int64_t step) override {
    return versions_.UndoTo(step, size_ > 0, [this](const Version& from, Version& to) { return Copy(from, to); });
  }
  void SetAppliedStep(int64_t step) override { versions_.SetStep(step); }

 private:
  // Writes the newest values of `to`.
  void Update(const Optimizer& optimizer, const Version& from, const Version& to) const {
    for (int64_t at = 0; at < begins_[kStatistics]; at += kPiece) {
      const int64_t count = std::min(kPiece, begins_[kStatistics] - at);
      const auto piece = [&](const at::Tensor& all) { return all.defined() ? all.narrow(0, at, count) : all; };
      ApplyOnDevice(optimizer, {.weights = piece(from.weights),
                                .gradient = piece(sums_),
                                .state = {piece(from.state[0]), piece(from.state[1])},
                                .new_weights = piece(to.weights),
                                .new_state = {piece(to.state[0]), piece(to.state[1])},
                                .scratch = scratch_,
                                .factors = &factors_});
    }
    const auto range = [&](const at::Tensor& all, Range begin, Range end) {
      return all.narrow(0, begins_[begin], begins_[end] - begins_[begin]);
    };
    at::Tensor changed = range(to.weights, kStatistics, kFrozen);
    at::add_out(changed, range(from.weights, kStatistics, kFrozen), range(sums_, kStatistics, kFrozen));
    if (!to.weights.is_same(from.weights)) {
      range(to.weights, kFrozen, kRanges).copy_(range(from.weights, kFrozen, kRanges));
      for (size_t s = 0; s < state_floats_; ++s) {
        range(to.state[s], kStatistics, kRanges).copy_(range(from.state[s], kStatistics, kRanges));
      }
    }
  }

  const Version& Latest() const { return versions_.Latest(); }
  // A parameter's part of a tensor of all.
  at::Tensor Of(const at::Tensor& all, size_t parameter) const {
    return all.narrow(0, offsets_[parameter], specs_[parameter].Size());
  }

  absl::Status Copy(const Version& from, Version& to) const {
    const at::AutoGradMode none(false);
    const auto copy = [](const at::Tensor& values, at::Tensor& into) {
      if (!into.defined()) into = at::empty_like(values);
      into.copy_(values);
    };
    copy(from.weights, to.weights);
    for (size_t s = 0; s < state_floats_; ++s) copy(from.state[s], to.state[s]);
    return absl::OkStatus();
  }

  // Calls use(values, at, count) for the ranges of the newest values that [first, first + size) of a part is. The state
  // of a parameter is, on the host and in checkpoints, all of its first floats, then all of its second.
  template <typename Use>
  absl::Status ForEachPart(size_t parameter, DensePart part, size_t first, size_t size, const Use& use) {
    if (part == DensePart::kGradient) MEDLEY_RETURN_IF_ERROR(TakeBack());
    const auto each = static_cast<size_t>(specs_.at(parameter).Size());
    const size_t all = part == DensePart::kState ? each * state_floats_ : each;
    MEDLEY_CHECK(first + size <= all, "a parameter has fewer values");
    for (size_t at = 0; at < size;) {
      const size_t index = (first + at) / each, within = (first + at) % each;
      const size_t count = std::min(size - at, each - within);
      const at::Tensor& tensor = part == DensePart::kWeights    ? Latest().weights
                                 : part == DensePart::kGradient ? sums_
                                                                : Latest().state[index];
      MEDLEY_RETURN_IF_ERROR(
          use(Of(tensor, parameter).narrow(0, static_cast<int64_t>(within), static_cast<int64_t>(count)), at, count));
      at += count;
    }
    return absl::OkStatus();
  }

  // Calls use(first, end, at, floats) for parameters [first, end), which begin at the float `at` of all on the host.
  template <typename Use>
  absl::Status ForEachGroup(const Use& use) {
    size_t at = 0;
    for (size_t first = 0; first < specs_.size();) {
      size_t end = first;
      int64_t floats = 0;
      while (end < specs_.size() && (end == first || floats + specs_[end].Size() <= kPiece)) {
        floats += specs_[end++].Size();
      }
      MEDLEY_RETURN_IF_ERROR(use(first, end, at, floats));
      at += static_cast<size_t>(floats);
      first = end;
    }
    return absl::OkStatus();
  }

  // The gradients that were handed to the host are changed there.
  absl::Status TakeBack() {
    if (!on_host_) return absl::OkStatus();
    const at::AutoGradMode none(false);
    const auto take = [&](size_t first, size_t end, size_t at, int64_t floats) -> absl::Status {
      const std::span<const float> host = host_.First(host_.size()).subspan(at, static_cast<size_t>(floats));
      if (end - first == 1) return place_.CopyIn(host, Of(sums_, first));
      const at::Tensor all = at::empty({floats}, place_.Floats());
      MEDLEY_RETURN_IF_ERROR(place_.CopyIn(host, all));
      int64_t from = 0;
      for (size_t p = first; p < end; from += specs_[p++].Size())
        Of(sums_, p).copy_(all.narrow(0, from, specs_[p].Size()));
      return absl::OkStatus();
    };
    MEDLEY_RETURN_IF_ERROR(ForEachGroup(take));
    on_host_ = false;
    return absl::OkStatus();
  }

  const std::vector<ParameterSpec> specs_;
  const Place place_;
  const size_t state_floats_;
  std::vector<int64_t> offsets_;                  // by parameter
  std::array<int64_t, kRanges + 1> begins_ = {};  // by Range
  int64_t size_ = 0;                              // of all, with what lies between
  VersionRing<Version> versions_;
  at::Tensor sums_;  // of gradients
  std::array<at::Tensor, 2> scratch_;
  ChangingFactors factors_;
  Recorder recorder_;
  absl::Status begun_;  // an error of the constructor
  int64_t gradient_step_ = kNoStep;
  AlignedFloats host_;    // the gradients in the host's order
  bool on_host_ = false;  // host_ is newer than sums_
};

}  // namespace

std::unique_ptr<ParameterStore> MakeResidentParameters(const std::vector<ParameterSpec>& specs,
                                                       const Optimizer& optimizer, uint64_t seed, int kept_updates,
                                                       const Place& place) {
  return std::make_unique<ResidentParameters>(specs, optimizer, seed, kept_updates, place);
}

}  // namespace medley::worker::aten
