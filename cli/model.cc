// medley model inspect FILE: prints how a model that was exported from PyTorch is divided into operations.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/model/inspect.h"
#include "common/base/status.h"
#include "worker/exported/archive.h"

namespace medley::cli {
namespace {

struct InspectFlags {
  std::string file;
  cut::Options cut;
};

absl::Status RunInspect(const InspectFlags& flags) {
  MEDLEY_ASSIGN_OR_RETURN(exported::Program program, exported::ReadArchive(flags.file));
  MEDLEY_ASSIGN_OR_RETURN(const cut::Cut cut,
                          cut::Divide(std::make_shared<const exported::Program>(std::move(program)), flags.cut));
  std::printf("%s", InspectText(cut).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddModel(CLI::App& app, int& exit_status) {
  CLI::App* model = app.add_subcommand("model", "Models that were exported from PyTorch");
  model->require_subcommand(1);
  CLI::App* command = model->add_subcommand(
      "inspect",
      "Print how spec.model.exported is divided into the operations that plans place; nothing of it is executed");
  const auto flags = std::make_shared<InspectFlags>();
  command->add_option("file", flags->file, "what torch.export.save wrote")->required();
  CLI::Option* depth = command->add_option("--depth", flags->cut.depth, "spec.model.cut.depth")
                           ->check(CLI::Range(0, 32))
                           ->capture_default_str();
  CLI::Option* modules =
      command->add_option("--module", flags->cut.modules, "one of spec.model.cut.modules; may be repeated")
          ->excludes(depth);
  command->add_flag("--finest", flags->cut.finest, "spec.model.cut.finest")->excludes(depth)->excludes(modules);
  command->add_option("--output", flags->cut.output, "spec.model.output");
  command->callback([flags, &exit_status] {
    const absl::Status status = RunInspect(*flags);
    if (status.ok()) return;
    std::fprintf(stderr, "medley model inspect: %s\n", base::Message(status).c_str());
    exit_status = 1;
  });
}

}  // namespace medley::cli
