#include "worker/model/block_shape.h"

#include <algorithm>
#include <set>

#include "common/base/status.h"
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

absl::Status CheckBatch(const SampleShape& shape, const BatchView& batch) {
  const size_t samples = static_cast<size_t>(batch.samples);
  const auto is = [&](size_t size, int width) { return size == samples * static_cast<size_t>(width); };
  if (!is(batch.ids.size(), shape.fields) || !is(batch.numerics.size(), shape.numerics) ||
      !is(batch.labels.size(), shape.labels) || !is(batch.weights.size(), batch.weights.empty() ? 0 : 1)) {
    return base::InvalidArgument(
        "the batch of {} samples has {} ids, {} numerics and {} labels, which do not match the model", samples,
        batch.ids.size(), batch.numerics.size(), batch.labels.size());
  }
  return absl::OkStatus();
}

absl::Status CheckBlockValues(const char* what, const std::vector<BlockValue>& expected, Values values, int samples) {
  if (values.size() != expected.size()) {
    return base::InvalidArgument("the block needs {} values as {}, got {}", expected.size(), what, values.size());
  }
  for (size_t k = 0; k < values.size(); ++k) {
    const size_t floats = static_cast<size_t>(samples) * static_cast<size_t>(expected[k].width);
    if (values[k].size() == floats) continue;
    return base::InvalidArgument("the {} of {} samples for operation {} has {} floats, the block needs {} per sample",
                                 what, samples, expected[k].operation, values[k].size(), expected[k].width);
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
