#include "worker/pipeline/dense_values.h"

#include <algorithm>

#include "common/base/status.h"

namespace medley::worker {
namespace {

std::span<float> PartOf(const DenseParameter& parameter, DensePart part) {
  switch (part) {
    case DensePart::kWeights:
      return parameter.weights;
    case DensePart::kState:
      return parameter.state;
    case DensePart::kGradient:
      return parameter.gradient;
  }
  return {};
}

}  // namespace

void ReadHost(const DenseParameter& parameter, DensePart part, size_t first, std::span<float> to) {
  const std::span<float> values = PartOf(parameter, part);
  MEDLEY_CHECK(first + to.size() <= values.size(), "a parameter has fewer values");
  std::ranges::copy(values.subspan(first, to.size()), to.begin());
}

void WriteHost(const DenseParameter& parameter, DensePart part, size_t first, std::span<const float> from) {
  const std::span<float> values = PartOf(parameter, part);
  MEDLEY_CHECK(first + from.size() <= values.size(), "a parameter has fewer values");
  std::ranges::copy(from, values.begin() + static_cast<std::ptrdiff_t>(first));
}

double SquaredNormOnHost(std::span<const DenseParameter> parameters) {
  double squares = 0;
  for (const DenseParameter& parameter : parameters) {
    if (parameter.spec.role != ParameterRole::kTrained || parameter.spec.copy_of >= 0) continue;
    for (const float g : parameter.gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  }
  return squares;
}

void ScaleGradientsOnHost(std::span<const DenseParameter> parameters, float factor) {
  for (const DenseParameter& parameter : parameters) {
    if (parameter.spec.role != ParameterRole::kTrained) continue;
    for (float& g : parameter.gradient) g *= factor;
  }
}

absl::Status SumCopiesOnHost(std::span<const DenseParameter> parameters, std::string_view name) {
  std::vector<std::span<float>> gradients;
  for (const DenseParameter& parameter : parameters) {
    if (parameter.spec.name == name) gradients.push_back(parameter.gradient);
  }
  if (gradients.empty()) return base::Internal("no block of this device has the shared parameter '{}'", name);
  const std::span<float> total = gradients.front();
  for (size_t g = 1; g < gradients.size(); ++g) {
    for (size_t i = 0; i < total.size(); ++i) total[i] += gradients[g][i];
  }
  for (size_t g = 1; g < gradients.size(); ++g) std::ranges::copy(total, gradients[g].begin());
  return absl::OkStatus();
}

// What BlockCompute has for blocks whose values are in the host's memory.

absl::Status BlockCompute::ReadValues(size_t parameter, DensePart part, size_t first, std::span<float> to) {
  if (part == DensePart::kGradient) Gradients();  // completes them
  ReadHost(Parameters().at(parameter), part, first, to);
  return absl::OkStatus();
}

absl::Status BlockCompute::WriteValues(size_t parameter, DensePart part, size_t first, std::span<const float> from) {
  if (part == DensePart::kGradient) Gradients();
  WriteHost(Parameters().at(parameter), part, first, from);
  return absl::OkStatus();
}

absl::StatusOr<double> BlockCompute::SquaredNorm() {
  Gradients();
  return SquaredNormOnHost(Parameters());
}

absl::Status BlockCompute::ScaleGradients(float factor) {
  Gradients();
  ScaleGradientsOnHost(Parameters(), factor);
  return absl::OkStatus();
}

absl::Status BlockCompute::SumCopies(std::string_view name) {
  Gradients();
  return SumCopiesOnHost(Parameters(), name);
}

DenseValues::DenseValues(BlockCompute& block, size_t index, const DenseParameter& parameter, DensePart part,
                         size_t state_floats)
    : host_(PartOf(parameter, part)), block_(&block), index_(index), part_(part) {
  const auto weights = static_cast<size_t>(parameter.spec.Size());
  size_ = part == DensePart::kState ? weights * state_floats : weights;
}

absl::StatusOr<std::span<const float>> DenseValues::Read(size_t first, size_t count, std::vector<float>& buffer) const {
  if (host_.size() == size_) return host_.subspan(first, count);
  buffer.resize(count);
  MEDLEY_RETURN_IF_ERROR(block_->ReadValues(index_, part_, first, buffer));
  return buffer;
}

absl::StatusOr<std::vector<float>> DenseValues::Copy() const {
  if (host_.size() == size_) return std::vector<float>(host_.begin(), host_.end());
  std::vector<float> all(size_);
  MEDLEY_RETURN_IF_ERROR(block_->ReadValues(index_, part_, 0, all));
  return all;
}

std::span<float> DenseValues::ForWriting(size_t first, size_t count, std::vector<float>& buffer) const {
  if (host_.size() == size_) return host_.subspan(first, count);
  buffer.resize(count);
  return buffer;
}

absl::Status DenseValues::Store(size_t first, std::span<const float> values) const {
  if (host_.size() != size_) return block_->WriteValues(index_, part_, first, values);
  if (values.data() != host_.data() + first) {
    std::ranges::copy(values, host_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  return absl::OkStatus();
}

absl::Status CopyValues(const DenseValues& from, const DenseValues& to) {
  MEDLEY_CHECK(from.size() == to.size(), "both have the same size");
  std::vector<float> buffer;
  for (size_t first = 0; first < from.size(); first += kDensePiece) {
    const size_t count = std::min(kDensePiece, from.size() - first);
    MEDLEY_ASSIGN_OR_RETURN(const std::span<const float> piece, from.Read(first, count, buffer));
    MEDLEY_RETURN_IF_ERROR(to.Store(first, piece));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
