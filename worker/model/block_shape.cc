#include "worker/model/block_shape.h"

#include <algorithm>
#include <set>

#include "common/model/operation_range.h"

namespace medley::worker {

BlockShape ShapeOfBlock(const Graph& graph, model::OperationRange range) {
  const auto at = [&](int operation) -> const Operation& { return graph.operations[static_cast<size_t>(operation)]; };
  BlockShape shape;
  std::set<int> needed;  // from earlier blocks
  for (int i = range.first; i < range.end; ++i) {
    for (const int input : at(i).inputs) {
      if (input < range.first) needed.insert(input);
    }
  }
  for (const int operation : needed) shape.inputs.push_back({operation, at(operation).output_width});
  for (int i = range.first; i < range.end; ++i) {
    std::vector<Source>& sources = shape.sources.emplace_back();
    for (const int input : at(i).inputs) {
      if (input >= range.first) {
        sources.push_back({true, static_cast<size_t>(input - range.first)});
      } else {
        sources.push_back({false, static_cast<size_t>(std::distance(needed.begin(), needed.find(input)))});
      }
    }
  }
  std::set<int> used;  // by later blocks
  for (int i = range.end; i < static_cast<int>(graph.operations.size()); ++i) {
    for (const int input : at(i).inputs) {
      if (range.Contains(input)) used.insert(input);
    }
  }
  for (const int operation : used) shape.outputs.push_back({operation, at(operation).output_width});
  return shape;
}

unsigned ReadsOf(const Graph& graph, model::OperationRange range) {
  unsigned parts = kNoParts;
  for (int i = range.first; i < range.end; ++i) {
    const Operation& operation = graph.operations[static_cast<size_t>(i)];
    const bool has_table = std::ranges::any_of(operation.parameters, &ParameterSpec::sparse);
    if (operation.kind == OperationKind::kLoss) {
      parts |= kLabels | kWeights;
    } else if (operation.kind == OperationKind::kImported) {
      const cut::Operation& imported = graph.imported->cut->operations[static_cast<size_t>(i)];
      if (has_table || !imported.batch.empty()) parts |= kIds | kNumerics;
    } else if (has_table || operation.inputs.empty()) {
      parts |= kIds | kNumerics;
    }
  }
  return parts;
}

}  // namespace medley::worker
