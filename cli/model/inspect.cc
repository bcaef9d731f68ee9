#include "cli/model/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <vector>

#include "cli/model/describe.h"
#include "cli/table.h"

namespace medley::cli {
namespace {

std::string TypedText(const worker::exported::TensorMeta& meta) {
  return fmt::format("{} {}", worker::exported::NameOf(meta.type), SizesText(meta));
}

}  // namespace

std::string InspectText(const worker::cut::Cut& cut) {
  const worker::exported::Program& program = *cut.program;
  const bool script = program.writer == "TorchScript";
  std::string text = script ? "TorchScript"
                            : fmt::format("exported by PyTorch {}, schema {}.{}", program.writer, program.schema_major,
                                          program.schema_minor);
  text += fmt::format("; {} calls\n", program.nodes.size());
  for (const worker::exported::Input& input : program.inputs) {
    if (input.kind != worker::exported::InputKind::kUser) continue;
    text += fmt::format("input {}: {}\n", input.name, TypedText(program.tensors.at(input.value)));
  }
  text += fmt::format("output {}: {}\n\n", cut.result, TypedText(program.tensors.at(cut.result)));
  Table table({"", "OPERATION", "KIND", "CALLS", "PARAMETERS", "FLOPS", "BYTES", "OUT", "TAKES"});
  for (size_t i = 0; i < cut.operations.size(); ++i) {
    const worker::cut::Operation& operation = cut.operations[i];
    std::vector<std::string> takes = operation.batch;
    for (const int input : operation.inputs) takes.push_back(std::to_string(input));
    table.Add({std::to_string(i), operation.name, operation.kind, std::to_string(operation.nodes.size()),
               CountText(ParameterCount(cut, operation)), CountText(operation.flops),
               CountText(sizeof(float) * static_cast<double>(operation.output_floats)), OutputText(cut, operation),
               fmt::format("{}", fmt::join(takes, " "))});
  }
  table.Add({std::to_string(cut.operations.size()), "loss", "Loss", "", "", "", "", "",
             std::to_string(cut.operations.size() - 1)});
  text += table.Text();
  text += fmt::format("\n{} parameters and statistics; {} FLOPs a sample, forward. BYTES: of OUT, a sample.\n",
                      CountText(ParameterCount(cut)), CountText(FlopCount(cut)));
  for (const std::string& warning : cut.removed) text += fmt::format("warning: {}\n", warning);
  std::map<std::string, int> merged;
  for (const std::string& warning : cut.warnings) ++merged[warning];
  for (const auto& [warning, times] : merged)
    text += fmt::format("note: {}{}\n", warning, times > 1 ? fmt::format(" ({} times)", times) : "");
  return text;
}

}  // namespace medley::cli
