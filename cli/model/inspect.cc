#include "cli/model/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cli/table.h"

namespace medley::cli {
namespace {

std::string Count(double value) {
  for (const auto& [unit, letter] : {std::pair{1e9, "G"}, std::pair{1e6, "M"}, std::pair{1e3, "k"}}) {
    if (value >= unit) return fmt::format("{:.1f} {}", value / unit, letter);
  }
  return fmt::format("{:.0f}", value);
}

std::string SizesText(const exported::TensorMeta& meta) {
  std::vector<std::string> sizes;
  for (const exported::SymInt& size : meta.sizes) {
    sizes.push_back(size.expression.empty() ? std::to_string(size.value) : "batch");
  }
  return fmt::format("{} [{}]", exported::NameOf(meta.type), fmt::join(sizes, ", "));
}

double Parameters(const cut::Cut& cut, const cut::Operation& operation) {
  double count = 0;
  for (const std::string& name : operation.owned) {
    double product = 1;
    for (const int64_t size : cut.program->stored.at(name).sizes) product *= static_cast<double>(size);
    count += product;
  }
  return count;
}

}  // namespace

std::string InspectText(const cut::Cut& cut) {
  const exported::Program& program = *cut.program;
  const bool script = program.writer == "TorchScript";
  std::string text = script ? "TorchScript"
                            : fmt::format("exported by PyTorch {}, schema {}.{}", program.writer, program.schema_major,
                                          program.schema_minor);
  text += fmt::format("; {} calls\n", program.nodes.size());
  for (const exported::Input& input : program.inputs) {
    if (input.kind != exported::InputKind::kUser) continue;
    text += fmt::format("input {}: {}\n", input.name, SizesText(program.tensors.at(input.value)));
  }
  text += fmt::format("output {}: {}\n\n", cut.result, SizesText(program.tensors.at(cut.result)));
  Table table({"", "OPERATION", "KIND", "CALLS", "PARAMETERS", "FLOPS", "OUT", "TAKES"});
  double parameters = 0, flops = 0;
  for (size_t i = 0; i < cut.operations.size(); ++i) {
    const cut::Operation& operation = cut.operations[i];
    const double own = Parameters(cut, operation);
    parameters += own;
    flops += operation.flops;
    std::vector<std::string> takes = operation.batch;
    for (const int input : operation.inputs) takes.push_back(std::to_string(input));
    table.Add({std::to_string(i), operation.name, operation.kind, std::to_string(operation.nodes.size()), Count(own),
               Count(operation.flops), Count(static_cast<double>(operation.output_floats)),
               fmt::format("{}", fmt::join(takes, " "))});
  }
  table.Add({std::to_string(cut.operations.size()), "loss", "Loss", "", "", "", "",
             std::to_string(cut.operations.size() - 1)});
  text += table.Text();
  text += fmt::format("\n{} parameters and statistics; {} FLOPs a sample, forward. OUT: floats a sample.\n",
                      Count(parameters), Count(flops));
  std::map<std::string, int> merged;
  for (const std::string& warning : cut.warnings) ++merged[warning];
  for (const auto& [warning, times] : merged)
    text += fmt::format("note: {}{}\n", warning, times > 1 ? fmt::format(" ({} times)", times) : "");
  return text;
}

}  // namespace medley::cli
