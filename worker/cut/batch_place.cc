#include "worker/cut/batch_place.h"

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "worker/cut/expression.h"
#include "worker/cut/uses.h"

namespace medley::worker::cut {
namespace {

constexpr int64_t kSamples = 12;  // so that sizes such as "s0//2" are whole

using Sizes = std::vector<int64_t>;

absl::StatusOr<Sizes> Evaluate(const exported::TensorMeta& meta, const std::string& batch) {
  Sizes sizes;
  for (const exported::SymInt& size : meta.sizes) {
    if (size.expression.empty()) {
      sizes.push_back(size.value);
      continue;
    }
    MEDLEY_ASSIGN_OR_RETURN(const Expression expression, Expression::Parse(size.expression));
    MEDLEY_ASSIGN_OR_RETURN(sizes.emplace_back(), expression.At({{batch, kSamples}}));
  }
  return sizes;
}

// The axis that depends on the batch and how many times it has each sample.
std::optional<BatchPlace> AxisOf(const exported::TensorMeta& meta, const Sizes& sizes) {
  std::optional<BatchPlace> place;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (meta.sizes[i].expression.empty()) continue;
    if (place.has_value() || sizes[i] <= 0 || sizes[i] % kSamples != 0) return std::nullopt;
    place = BatchPlace{static_cast<int>(i), sizes[i] / kSamples, sizes[i] / kSamples};
  }
  return place;
}

int64_t After(const Sizes& sizes, int axis) {
  int64_t product = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < sizes.size(); ++i) product *= sizes[i];
  return product;
}

// The elements keep their order; only the axes are others.
bool Reshapes(const exported::Node& node) {
  static const std::set<std::string_view> kReshapes = {"view",    "_unsafe_view", "reshape", "flatten", "unflatten",
                                                       "squeeze", "unsqueeze",    "ravel",   "view_as", "reshape_as"};
  return kReshapes.contains(CallOf(node));
}

}  // namespace

absl::StatusOr<std::map<std::string, BatchPlace>> BatchPlaces(const exported::Program& program,
                                                              const std::string& batch) {
  std::map<std::string, BatchPlace> places;
  std::map<std::string, Sizes> sizes;
  const auto add = [&](const std::string& name) -> absl::StatusOr<std::optional<BatchPlace>> {
    const auto meta = program.tensors.find(name);
    if (meta == program.tensors.end()) return std::nullopt;
    MEDLEY_ASSIGN_OR_RETURN(sizes[name], Evaluate(meta->second, batch));
    return AxisOf(meta->second, sizes[name]);
  };
  for (const exported::Input& input : program.inputs) {
    MEDLEY_ASSIGN_OR_RETURN(const std::optional<BatchPlace> place, add(input.value));
    if (place.has_value()) places[input.value] = *place;
  }
  for (const exported::Node& node : program.nodes) {
    // The first argument with a batch says where it is.
    std::string from;
    ForEachUse(node, [&](const std::string& name) {
      if (from.empty() && places.contains(name)) from = name;
    });
    for (const std::string& name : node.outputs) {
      MEDLEY_ASSIGN_OR_RETURN(std::optional<BatchPlace> place, add(name));
      if (!place.has_value()) continue;
      if (!from.empty()) {
        const BatchPlace& before = places[from];
        if (Reshapes(node)) {
          // Neighbours of one sample are as many elements apart as before.
          const int64_t apart = before.inner * After(sizes[from], before.axis), each = After(sizes[name], place->axis);
          if (apart % each != 0 || apart / each == 0 || place->factor % (apart / each) != 0) continue;
          place->inner = apart / each;
        } else if (place->factor == before.factor) {
          place->inner = before.inner;
        } else if (!before.Outermost()) {
          continue;
        }
      }
      places[name] = *place;
    }
  }
  return places;
}

}  // namespace medley::worker::cut
