// The kinds of spec.model.layers: which fields each has, what it takes, how wide its outputs are. Pure; thread-safe.
//
//   Embedding             rows of the sample's ids, one behind the other or added; then its numbers, if it has numerics
//   Numerics              the numbers of the sample
//   FullyConnected        activation(x W + b)
//   Cross                 x0 * (x W + b) + x, element by element (Wang and others 2021: "DCN V2"); one input: x0 is x
//   Concat                its inputs, one behind the other
//   Add, Multiply         element by element
//   Slice                 `out` numbers of each vector, from `first` on
//   Pool                  the sum, mean or maximum of its vectors
//   Interaction           the products of each two vectors, i > j: row by row (Naumov and others 2019: "DLRM")
//   FactorizationMachine  the sum of the same products (Rendle 2010), in time linear in the number of vectors
//   Match                 the products of each vector of the first input with each of the second
//   InnerProduct, Cosine  the product, or the cosine, of vector i of the first input and vector i of the second
//   Dropout               belongs to the layer before it
//   Loss                  the loss of the task
//
// Vectors are `dim` numbers each, in the order of the inputs.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/model/job_spec.h"

namespace medley::model {

// The most numbers that a layer gives for a sample.
inline constexpr int64_t kMostLayerWidth = int64_t{1} << 24;

// The fields of a LayerSpec beside name and kind, as bits.
enum LayerFields : unsigned {
  kOut = 1,
  kActivation = 2,
  kFraction = 4,
  kDim = 8,        // may have it
  kNeedsDim = 16,  // must have it
  kFirst = 32,
  kFields = 64,
  kCombine = 128,
  kWithNumerics = 256,
  kNegatives = 512,
};

struct LayerKind {
  std::string_view name;     // in jobs and exports
  std::string_view planned;  // in the tables of planners
  unsigned fields = 0;
  int least_inputs = 0;  // 1: the layer before it, unless some are named
  int most_inputs = 0;
};

// Null: unknown.
const LayerKind* LayerKindNamed(std::string_view name);

// What decides how wide the outputs of a layer with vectors are.
struct VectorShape {
  std::string_view kind;  // Concat to Cosine of the list above, or Cross
  int64_t dim = 0;        // 0: each input is one vector
  int64_t first = 0;
  int64_t out = 0;
};

// An input of a layer, for a sentence.
struct NamedWidth {
  std::string_view name;
  int64_t width = 0;  // floats per sample
};

// The width of the outputs. Errors: InvalidArgument, a sentence that names the inputs which do not fit and says their
// widths; it does not name the layer.
absl::StatusOr<int64_t> VectorLayerWidth(const VectorShape& shape, std::span<const NamedWidth> inputs);

// A layer of a list whose inputs were found.
struct ResolvedLayer {
  std::vector<int> inputs;  // layers, ascending; never a Dropout. None: it reads the sample
  int64_t width = 0;        // floats per sample of its outputs; 0: a Dropout, the Loss
  int fields = 0;           // Embedding: ids that it looks up, without drawn ones
};

// Finds the inputs of every layer and the widths. Names and kinds have been checked. Errors: InvalidArgument, a
// sentence that names the field and the layer.
absl::StatusOr<std::vector<ResolvedLayer>> ResolveLayers(const ModelSpec& model, const SchemaSpec& schema);

}  // namespace medley::model
