#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/model_data.h"
#include "cli/output_file.h"
#include "common/base/status.h"
#include "worker/export/onnx.h"

namespace medley::cli {
namespace {

struct OnnxOptions {
  std::filesystem::path model;
  std::string output;
};

absl::Status Run(const OnnxOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(const worker::LoadedModel model, worker::ReadExport(options.model));
  MEDLEY_ASSIGN_OR_RETURN(const std::string bytes, worker::ToOnnx(model));
  std::string output = options.output.empty() ? (options.model / "model.onnx").string() : options.output;
  MEDLEY_RETURN_IF_ERROR(OpenStandardOutput({&output}));
  MEDLEY_RETURN_IF_ERROR(WriteOutput(output, bytes));
  if (options.output == "-") return absl::OkStatus();
  std::printf("%s\n", output.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddOnnx(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("onnx", "Write an exported model in the ONNX format");
  auto options = std::make_shared<OnnxOptions>();
  command->add_option("EXPORT", options->model, "folder of an exported model")->required();
  command->add_option("-o,--output", options->output,
                      "file to write; default: model.onnx in the folder; -: standard output");
  command->callback([options, &exit_status] { exit_status = ExitStatusOf(Run(*options)); });
}

}  // namespace medley::cli
