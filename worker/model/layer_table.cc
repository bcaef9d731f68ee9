#include "worker/model/layer_table.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/model/layer_kinds.h"

namespace medley::worker {
namespace {

constexpr std::array<std::pair<OperationKind, std::string_view>, 16> kNamed = {{
    {OperationKind::kEmbedding, "Embedding"},
    {OperationKind::kFullyConnected, "FullyConnected"},
    {OperationKind::kAdd, "Add"},
    {OperationKind::kMultiply, "Multiply"},
    {OperationKind::kLoss, "Loss"},
    {OperationKind::kImported, "Imported"},
    {OperationKind::kNumerics, "Numerics"},
    {OperationKind::kCross, "Cross"},
    {OperationKind::kConcat, "Concat"},
    {OperationKind::kSlice, "Slice"},
    {OperationKind::kPool, "Pool"},
    {OperationKind::kInteraction, "Interaction"},
    {OperationKind::kFactorizationMachine, "FactorizationMachine"},
    {OperationKind::kMatch, "Match"},
    {OperationKind::kInnerProduct, "InnerProduct"},
    {OperationKind::kCosine, "Cosine"},
}};

}  // namespace

std::string_view KindName(OperationKind kind) {
  return std::ranges::find(kNamed, kind, &std::pair<OperationKind, std::string_view>::first)->second;
}

std::optional<OperationKind> KindNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kNamed, name, &std::pair<OperationKind, std::string_view>::second);
  if (found == kNamed.end()) return std::nullopt;
  return found->first;
}

std::string PlannedKind(OperationKind kind) {
  const model::LayerKind* const known = model::LayerKindNamed(KindName(kind));
  return known == nullptr ? "" : std::string(known->planned);
}

}  // namespace medley::worker
