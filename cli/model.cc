// medley model inspect FILE: prints how a model from PyTorch is divided into operations.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/model/cut_svg.h"
#include "cli/model/inspect.h"
#include "cli/model/layer_table.h"
#include "cli/output_file.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/model.h"
#include "medley/profile/v1/profile.pb.h"
#include "worker/exported/archive.h"
#include "worker/torchscript/read.h"

namespace medley::cli {
namespace {

struct InspectFlags {
  std::string file;
  std::vector<std::string> inputs;  // of a TorchScript file
  cut::Options cut;
  std::string svg;
  std::string table;
};

absl::StatusOr<exported::Program> ReadProgram(const InspectFlags& flags) {
  if (flags.inputs.empty()) return exported::ReadArchive(flags.file);
  std::vector<torchscript::SampleInput> inputs;
  for (const std::string& text : flags.inputs) {
    MEDLEY_ASSIGN_OR_RETURN(inputs.emplace_back(), torchscript::ParseSample(text));
  }
  return torchscript::ReadTorchScript(flags.file, inputs);
}

absl::Status RunInspect(InspectFlags flags) {
  MEDLEY_RETURN_IF_ERROR(OpenStandardOutput({&flags.svg, &flags.table}));
  MEDLEY_ASSIGN_OR_RETURN(exported::Program program, ReadProgram(flags));
  MEDLEY_ASSIGN_OR_RETURN(const cut::Cut cut,
                          cut::Divide(std::make_shared<const exported::Program>(std::move(program)), flags.cut));
  std::printf("%s", InspectText(cut).c_str());
  if (!flags.svg.empty()) MEDLEY_RETURN_IF_ERROR(WriteOutput(flags.svg, CutSvg(flags.file, cut)));
  if (flags.table.empty()) return absl::OkStatus();
  profile::v1::Model message;
  model::ToProto(LayerTable(std::filesystem::path(flags.file).stem().string(), cut), message);
  return WriteOutput(flags.table, model::ToYaml(message));
}

}  // namespace

void AddModel(CLI::App& app, int& exit_status) {
  CLI::App* model = app.add_subcommand("model", "Models from PyTorch");
  model->require_subcommand(1);
  CLI::App* command = model->add_subcommand("inspect",
                                            "Print how spec.model.exported or torchScript is divided into the "
                                            "operations that plans place; nothing of it is executed here");
  const auto flags = std::make_shared<InspectFlags>();
  command->add_option("file", flags->file, "what torch.export.save or torch.jit.save wrote")->required();
  command->add_option("--input", flags->inputs,
                      "of TorchScript, an argument of forward and the shape of a sample: image:float32:1,28,28");
  CLI::Option* depth = command->add_option("--depth", flags->cut.depth, "spec.model.cut.depth")
                           ->check(CLI::Range(0, 32))
                           ->capture_default_str();
  CLI::Option* modules =
      command->add_option("--module", flags->cut.modules, "one of spec.model.cut.modules; may be repeated")
          ->excludes(depth);
  command->add_flag("--finest", flags->cut.finest, "spec.model.cut.finest")->excludes(depth)->excludes(modules);
  command->add_option("--output", flags->cut.output, "spec.model.output");
  command->add_option("--svg", flags->svg, "file for a drawing of the operations; -: standard output");
  command->add_option(
      "--table", flags->table,
      "file for the operations as a layer table, which medley profile and medley plan read; -: standard output");
  command->callback([flags, &exit_status] {
    const absl::Status status = RunInspect(*flags);
    if (status.ok()) return;
    std::fprintf(stderr, "medley model inspect: %s\n", base::Message(status).c_str());
    exit_status = 1;
  });
}

}  // namespace medley::cli
