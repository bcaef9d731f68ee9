#include "worker/cut/flops.h"

#include <optional>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "worker/cut/expression.h"
#include "worker/cut/uses.h"

namespace medley::worker::cut {
namespace {

constexpr int64_t kCounted = 12;  // samples, so that sizes such as "s0//2" are whole

using Extents = std::vector<double>;

absl::StatusOr<Extents> ExtentsOf(const exported::TensorMeta& meta, const std::string& batch) {
  Extents sizes;
  for (const exported::SymInt& size : meta.sizes) {
    if (size.expression.empty()) {
      sizes.push_back(static_cast<double>(size.value));
      continue;
    }
    MEDLEY_ASSIGN_OR_RETURN(const Expression expression, Expression::Parse(size.expression));
    MEDLEY_ASSIGN_OR_RETURN(const int64_t value, expression.At({{batch, kCounted}}));
    sizes.push_back(static_cast<double>(value));
  }
  return sizes;
}

double Product(const Extents& sizes) {
  double product = 1;
  for (const double size : sizes) product *= size;
  return product;
}

// For the tensor argument at a place; nullopt for other arguments.
absl::StatusOr<std::optional<Extents>> ExtentsAt(const exported::Program& program, const exported::Node& node,
                                                 size_t place, const std::string& batch) {
  if (place >= node.inputs.size()) return std::nullopt;
  const auto* ref = std::get_if<exported::ValueRef>(&node.inputs[place].value);
  const auto meta = ref != nullptr ? program.tensors.find(ref->name) : program.tensors.end();
  if (meta == program.tensors.end()) return std::nullopt;
  MEDLEY_ASSIGN_OR_RETURN(Extents sizes, ExtentsOf(meta->second, batch));
  return sizes;
}

}  // namespace

absl::StatusOr<double> FlopsOf(const exported::Program& program, int index, const std::string& batch) {
  const exported::Node& node = program.nodes[static_cast<size_t>(index)];
  const std::string_view call = CallOf(node);
  double results = 0;
  for (const std::string& name : node.outputs) {
    const auto meta = program.tensors.find(name);
    if (meta == program.tensors.end()) continue;
    MEDLEY_ASSIGN_OR_RETURN(const Extents sizes, ExtentsOf(meta->second, batch));
    results += Product(sizes);
    if (call.find("attention") != std::string_view::npos) break;  // the others are statistics
  }
  const bool adds = call == "addmm" || call == "baddbmm";
  std::optional<Extents> weights;
  MEDLEY_ASSIGN_OR_RETURN(weights, ExtentsAt(program, node, adds ? 2 : 1, batch));
  double each = 1;  // multiplications and additions for an element of the result
  if (weights.has_value() && !weights->empty()) {
    if (call == "linear") {
      each = 2 * weights->back();
    } else if (call == "mm" || call == "bmm" || call == "matmul" || adds) {
      each = 2 * (weights->size() == 1 ? weights->back() : (*weights)[weights->size() - 2]);
    } else if (call.starts_with("conv") && (*weights)[0] > 0) {
      each = 2 * Product(*weights) / (*weights)[0];  // of one output channel
    } else if (call.find("attention") != std::string_view::npos && weights->size() >= 2) {
      each = 4 * (*weights)[weights->size() - 2];  // queries by keys, then by values
    }
  }
  if (IsView(node)) each = 0;
  return each * results / kCounted;
}

}  // namespace medley::worker::cut
