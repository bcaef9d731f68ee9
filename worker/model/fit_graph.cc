#include "worker/model/fit_graph.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/model/imported_graph.h"

namespace medley::worker {
namespace {

constexpr size_t kMostNamed = 20;  // classes in an error message

std::vector<std::string> ClassesOf(const model::JobSpec& spec, const Dataset& train) {
  if (spec.data.schema.task == model::Task::kBinary) return {"0", "1"};
  if (!spec.data.schema.label_classes.empty()) return spec.data.schema.label_classes;
  return train.transform().label.classes;
}

// rows / (classes x rows of the class). A class without rows has 1: no sample is of it.
std::vector<float> Balanced(const Dataset& train, size_t classes) {
  std::vector<double> rows(classes);
  for (const float label : train.view().labels) {
    if (label >= 0) ++rows[static_cast<size_t>(label)];  // tokens may have none
  }
  const auto occur = static_cast<double>(std::ranges::count_if(rows, [](double n) { return n > 0; }));
  std::vector<float> weights;
  for (const double n : rows) {
    weights.push_back(n == 0 ? 1 : static_cast<float>(static_cast<double>(train.rows()) / (occur * n)));
  }
  return weights;
}

absl::StatusOr<std::vector<float>> WeightsOf(const model::ClassWeightsSpec& spec,
                                             const std::vector<std::string>& classes, const Dataset& train) {
  if (spec.balanced) return Balanced(train, classes.size());
  std::vector<float> weights(classes.size(), 1);
  for (const auto& [name, weight] : spec.weights) {
    const auto found = std::ranges::find(classes, name);
    if (found == classes.end()) {
      const std::vector<std::string> named(classes.begin(), classes.begin() + std::min(classes.size(), kMostNamed));
      return base::InvalidArgument(
          "spec.training.classWeights.weights: '{}' is no class of the training data, which have {} classes: {}{}",
          name, classes.size(), fmt::join(named, ", "), named.size() < classes.size() ? ", ..." : "");
    }
    weights[static_cast<size_t>(found - classes.begin())] = static_cast<float>(weight);
  }
  return weights;
}

}  // namespace

absl::StatusOr<Graph> FitGraph(const model::JobSpec& spec, const Dataset& train, const std::string& root) {
  const std::vector<std::string> classes = ClassesOf(spec, train);
  MEDLEY_ASSIGN_OR_RETURN(Graph graph, ReadGraph(spec, root, static_cast<int>(classes.size())));
  MEDLEY_RETURN_IF_ERROR(CheckRows(graph, train));
  if (graph.operations.back().negatives > 0) MEDLEY_RETURN_IF_ERROR(PredictionGraph(spec).status());
  if (spec.training.class_weights) {
    MEDLEY_ASSIGN_OR_RETURN(graph.operations.back().class_weights,
                            WeightsOf(*spec.training.class_weights, classes, train));
  }
  return graph;
}

absl::Status CheckRows(const Graph& graph, const Dataset& data) {
  const BatchView& all = data.view();
  for (const ParameterSpec& table : graph.Parameters(/*sparse=*/true)) {
    if (table.initializer != Initializer::kStored) continue;
    for (int sample = 0; sample < all.samples; ++sample) {
      const auto first = static_cast<size_t>(sample) * static_cast<size_t>(data.shape().fields) +
                         static_cast<size_t>(table.first_field);
      for (const int32_t id : all.ids.subspan(first, static_cast<size_t>(table.fields))) {
        if (id >= 0 && id < table.rows) continue;
        return base::InvalidArgument(
            "sample {} of the data has the number {} as a row of '{}', which has the rows 0 to {}", sample + 1, id,
            table.name, table.rows - 1);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
