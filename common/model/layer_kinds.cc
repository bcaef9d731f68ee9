#include "common/model/layer_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "common/base/status.h"

namespace medley::model {
namespace {

constexpr int kMany = 64;

constexpr std::array kLayerKinds = {
    LayerKind{"Embedding", "EMBEDDING", kOut | kFirst | kFields | kCombine | kWithNumerics | kNegatives, 0, 0},
    LayerKind{"Numerics", "NUMERICS", 0, 0, 0},
    LayerKind{"FullyConnected", "FULLY_CONNECTED", kOut | kActivation, 1, 1},
    LayerKind{"Cross", "CROSS", 0, 1, 2},
    LayerKind{"Concat", "CONCAT", 0, 2, kMany},
    LayerKind{"Add", "ADD", 0, 2, kMany},
    LayerKind{"Multiply", "MULTIPLY", 0, 2, 2},
    LayerKind{"Slice", "SLICE", kOut | kDim | kFirst, 1, 1},
    LayerKind{"Pool", "POOLING", kDim | kNeedsDim | kCombine, 1, kMany},
    LayerKind{"Interaction", "INTERACTION", kDim | kNeedsDim, 1, kMany},
    LayerKind{"FactorizationMachine", "FACTORIZATION_MACHINE", kDim | kNeedsDim, 1, kMany},
    LayerKind{"Match", "MATCH", kDim | kNeedsDim, 2, 2},
    LayerKind{"InnerProduct", "INNER_PRODUCT", kDim, 2, 2},
    LayerKind{"Cosine", "COSINE", kDim, 2, 2},
    LayerKind{"Dropout", "DROPOUT", kFraction, 0, 0},
    LayerKind{"Loss", "LOSS", kNegatives, 1, 1},
};

std::string TextOf(std::span<const NamedWidth> inputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += fmt::format("{}'{}' has {}",
                        i == 0                   ? ""
                        : i + 1 == inputs.size() ? " and "
                                                 : ", ",
                        inputs[i].name, inputs[i].width);
  }
  return text + (inputs.size() == 1 && inputs[0].width == 1 ? " number" : " numbers");
}

// How many vectors each input has.
absl::StatusOr<std::vector<int64_t>> VectorsOf(const VectorShape& shape, std::span<const NamedWidth> inputs) {
  std::vector<int64_t> counts;
  for (const NamedWidth& input : inputs) {
    const int64_t dim = shape.dim > 0 ? shape.dim : input.width;
    if (dim == 0 || input.width % dim != 0) {
      return base::InvalidArgument("takes vectors of {} numbers, but {}", dim, TextOf({&input, 1}));
    }
    counts.push_back(input.width / dim);
  }
  return counts;
}

absl::Status EquallyWide(std::span<const NamedWidth> inputs, std::string_view what) {
  for (const NamedWidth& input : inputs) {
    if (input.width != inputs.front().width) {
      return base::InvalidArgument("{} inputs of one width, but {}", what, TextOf(inputs));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PairsOf(const VectorShape& shape, std::span<const NamedWidth> inputs) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, VectorsOf(shape, inputs));
  int64_t vectors = 0;
  for (const int64_t count : counts) vectors += count;
  if (vectors < 2) {
    return base::InvalidArgument("multiplies pairs of vectors, but its inputs are one vector of {} numbers", shape.dim);
  }
  return shape.kind == "FactorizationMachine" ? 1 : vectors * (vectors - 1) / 2;
}

absl::StatusOr<int64_t> SliceOf(const VectorShape& shape, std::span<const NamedWidth> inputs) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, VectorsOf(shape, inputs));
  const int64_t dim = shape.dim > 0 ? shape.dim : inputs[0].width;
  if (shape.first + shape.out > dim) {
    return base::InvalidArgument("takes the numbers {} to {} of vectors that have {}", shape.first,
                                 shape.first + shape.out - 1, dim);
  }
  return counts[0] * shape.out;
}

}  // namespace

const LayerKind* LayerKindNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kLayerKinds, name, &LayerKind::name);
  return found == kLayerKinds.end() ? nullptr : &*found;
}

absl::StatusOr<int64_t> VectorLayerWidth(const VectorShape& shape, std::span<const NamedWidth> inputs) {
  const std::string_view kind = shape.kind;
  int64_t width = inputs.front().width;
  if (kind == "Add" || kind == "Multiply" || kind == "Cross") {
    MEDLEY_RETURN_IF_ERROR(EquallyWide(inputs, kind == "Add" ? "adds" : "multiplies"));
  } else if (kind == "Concat") {
    width = 0;
    for (const NamedWidth& input : inputs) width += input.width;
  } else if (kind == "Slice") {
    MEDLEY_ASSIGN_OR_RETURN(width, SliceOf(shape, inputs));
  } else if (kind == "Pool") {
    MEDLEY_RETURN_IF_ERROR(VectorsOf(shape, inputs).status());
    width = shape.dim;
  } else if (kind == "Interaction" || kind == "FactorizationMachine") {
    MEDLEY_ASSIGN_OR_RETURN(width, PairsOf(shape, inputs));
  } else if (kind == "Match") {
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, VectorsOf(shape, inputs));
    width = counts[0] * counts[1];
  } else {
    MEDLEY_RETURN_IF_ERROR(EquallyWide(inputs, "compares the vectors of"));
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, VectorsOf(shape, inputs));
    width = counts[0];
  }
  if (width <= kMostLayerWidth) return width;
  return base::InvalidArgument("would give {} numbers for each sample; at most {} are possible", width,
                               kMostLayerWidth);
}

}  // namespace medley::model
