#include "cli/model/job_layers.h"

#include <fmt/format.h>

#include <vector>

#include "cli/model/describe.h"
#include "cli/table.h"
#include "common/model/model.h"
#include "scheduler-service/profile/work.h"

namespace medley::cli {
namespace {

// The layers whose outputs each layer takes.
std::vector<std::vector<int>> InputsOf(const model::Model& model) {
  std::vector<std::vector<int>> inputs;
  for (int i = 0; i < std::ssize(model.layers); ++i) {
    const std::vector<int>& named = model.layers[static_cast<size_t>(i)].inputs;
    std::vector<int>& found = inputs.emplace_back();
    if (named.empty() && i > 0) found.push_back(i - 1);
    for (const int input : named) {
      if (input >= 0) found.push_back(input);
    }
  }
  return inputs;
}

}  // namespace

std::string JobLayersText(const model::Model& model) {
  const std::vector<std::vector<int>> inputs = InputsOf(model);
  std::vector<size_t> last_use(model.layers.size(), 0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (const int input : inputs[i]) last_use[static_cast<size_t>(input)] = i;
  }
  Table table({"", "LAYER", "KIND", "PARAMETERS", "FLOPS", "BYTES", "CUT", "TAKES"});
  double parameters = 0, rows = 0, flops = 0;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const model::Layer& layer = model.layers[i];
    const auto work = sched::WorkOf(layer);
    const double mine = work.ok() ? work->forward_flops : 0;
    double cut = 0;  // each value once, however many layers take it
    for (size_t k = 0; k <= i; ++k) cut += last_use[k] > i ? model.layers[k].output_bytes : 0;
    std::string takes;
    for (const int input : inputs[i]) takes += (takes.empty() ? "" : " ") + std::to_string(input);
    (layer.sparse ? rows : parameters) += layer.weight_bytes / sizeof(float);
    flops += mine;
    const bool last = i + 1 == model.layers.size();
    table.Add({std::to_string(i), layer.name, layer.kind, CountText(layer.weight_bytes / sizeof(float)),
               CountText(mine), last ? "" : CountText(layer.output_bytes), last ? "" : CountText(cut), takes});
  }
  return table.Text() +
         fmt::format(
             "\n{} parameters of layers, {} in tables; {} FLOPs a sample, forward. BYTES: of the outputs, a sample. "
             "CUT: of all values that would pass a stage boundary after the layer.\n",
             CountText(parameters), CountText(rows), CountText(flops));
}

}  // namespace medley::cli
