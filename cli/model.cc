// medley model inspect FILE: prints the operations of a model from PyTorch, or the layers of a job.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/model/cut_svg.h"
#include "cli/model/inspect.h"
#include "cli/model/job_layers.h"
#include "cli/model/layer_table.h"
#include "cli/output_file.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/convert.h"
#include "common/model/job_spec.h"
#include "common/model/model.h"
#include "common/model/text.h"
#include "medley/profile/v1/profile.pb.h"
#include "operator/api/validate.h"
#include "worker/exported/archive.h"
#include "worker/model/graph.h"
#include "worker/torchscript/read.h"

namespace medley::cli {
namespace {

struct InspectFlags {
  std::string file;
  std::vector<std::string> inputs;  // of a TorchScript file
  worker::cut::Options cut;
  std::string svg;
  std::string table;
};

absl::StatusOr<worker::exported::Program> ReadProgram(const InspectFlags& flags) {
  if (flags.inputs.empty()) return worker::exported::ReadArchive(flags.file);
  std::vector<worker::torchscript::SampleInput> inputs;
  for (const std::string& text : flags.inputs) {
    MEDLEY_ASSIGN_OR_RETURN(inputs.emplace_back(), worker::torchscript::ParseSample(text));
  }
  return worker::torchscript::ReadTorchScript(flags.file, inputs);
}

absl::Status WriteTable(const std::string& file, const model::Model& table) {
  if (file.empty()) return absl::OkStatus();
  profile::v1::Model message;
  model::ToProto(table, message);
  return WriteOutput(file, model::ToYaml(message));
}

// What the rules of the API server say of the model of a job. Other rules need what only `medley run` knows, such as
// folders.
absl::Status CheckModelRules(const nlohmann::json& spec) {
  const kube::Object job({{"metadata", {{"name", "job"}}}, {"spec", spec}});
  for (const std::string& sentence : ops::ValidateTrainingJob(job)) {
    if (sentence.find("spec.model") != std::string::npos) return base::InvalidArgument("{}", sentence);
  }
  return absl::OkStatus();
}

// The layers of the file's TrainingJob.
absl::StatusOr<model::Model> LayersOfJob(const std::string& text) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<nlohmann::json> documents, document::ParseYamlStream(text));
  for (const nlohmann::json& document : documents) {
    if (!document.is_object() || !document.contains("kind") || document["kind"] != "TrainingJob") continue;
    const nlohmann::json spec_json = document.contains("spec") ? document["spec"] : nlohmann::json();
    MEDLEY_ASSIGN_OR_RETURN(const model::JobSpec spec, model::ParseJobSpec(spec_json.dump()));
    MEDLEY_RETURN_IF_ERROR(CheckModelRules(spec_json));
    if (spec.model.imported()) {
      return base::InvalidArgument("the job has a model from PyTorch: inspect the file of spec.model");
    }
    MEDLEY_ASSIGN_OR_RETURN(const worker::Graph graph, worker::BuildGraph(spec));
    model::Model table = graph.ToModel();
    const nlohmann::json::json_pointer name("/metadata/name");
    if (document.contains(name) && document[name].is_string()) table.name = document[name];
    return table;
  }
  return base::InvalidArgument("the file has no TrainingJob");
}

absl::Status InspectJob(const InspectFlags& flags, const std::string& text) {
  if (!flags.svg.empty()) return base::InvalidArgument("--svg draws models from PyTorch only");
  MEDLEY_ASSIGN_OR_RETURN(const model::Model table, LayersOfJob(text));
  std::printf("%s", JobLayersText(table).c_str());
  return WriteTable(flags.table, table);
}

absl::Status RunInspect(InspectFlags flags) {
  MEDLEY_RETURN_IF_ERROR(OpenStandardOutput({&flags.svg, &flags.table}));
  if (flags.file.ends_with(".yaml") || flags.file.ends_with(".yml")) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(flags.file, int64_t{1} << 24));
    return InspectJob(flags, text);
  }
  MEDLEY_ASSIGN_OR_RETURN(worker::exported::Program program, ReadProgram(flags));
  MEDLEY_ASSIGN_OR_RETURN(
      const worker::cut::Cut cut,
      worker::cut::Divide(std::make_shared<const worker::exported::Program>(std::move(program)), flags.cut));
  std::printf("%s", InspectText(cut).c_str());
  if (!flags.svg.empty()) MEDLEY_RETURN_IF_ERROR(WriteOutput(flags.svg, CutSvg(flags.file, cut)));
  return WriteTable(flags.table, LayerTable(std::filesystem::path(flags.file).stem().string(), cut));
}

}  // namespace

void AddModel(CLI::App& app, int& exit_status) {
  CLI::App* model = app.add_subcommand("model", "Models as plans see them");
  model->require_subcommand(1);
  CLI::App* command = model->add_subcommand("inspect",
                                            "Print how spec.model.exported or torchScript is divided into the "
                                            "operations that plans place, or the layers of a job's own model; nothing "
                                            "of it is executed here");
  const auto flags = std::make_shared<InspectFlags>();
  command->add_option("file", flags->file, "what torch.export.save or torch.jit.save wrote, or a job file (.yaml)")
      ->required();
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
