// medley profile: prints the datasheets of machines, and estimates profiles from them.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/plan_input.h"
#include "cli/table.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/hardware.h"
#include "common/model/profile.h"
#include "common/model/text.h"
#include "medley/profile/v1/profile.pb.h"
#include "scheduler-service/profile/analytic.h"

namespace medley::cli {
namespace {

constexpr int kMaxBatch = 1 << 24;

struct ProfileFlags {
  std::string model;  // file with a layer table, a profile or a planning request
  std::vector<std::string> types;
  int batch = 64;
  std::string output;    // empty: standard output
  std::string hardware;  // datasheets that replace the built-in ones
  bool list = false;
};

std::string Scaled(double value, double unit, int digits) { return base::FormatDecimal(value / unit, digits); }

std::string Flops(const model::Hardware& hardware, const char* precision) {
  const auto found = hardware.flops.find(precision);
  return found == hardware.flops.end() ? "-" : Scaled(found->second, 1e12, 3);
}

void PrintList(const sched::HardwareCatalog& catalog) {
  Table table({"NAME", "CLASS", "FP32 TFLOP/S", "FP16", "MEMORY GIB", "GB/S", "NETWORK GB/S", "LAUNCH US", "WHAT"});
  for (const model::Hardware& h : catalog.all()) {
    table.Add({h.name, h.cls == model::ResourceClass::kGpu ? "GPU" : "CPU", Flops(h, "fp32"), Flops(h, "fp16"),
               Scaled(h.memory_bytes, 1 << 30, 1), Scaled(h.memory_bytes_per_second, 1e9, 1),
               Scaled(h.network_bytes_per_second, 1e9, 3), Scaled(h.launch_seconds, 1e-6, 1), h.description});
  }
  std::fputs(table.Text().c_str(), stdout);
}

// `type` is "v100", or "gpu=v100" for a resource type `gpu` with the datasheet of a v100.
absl::Status AddType(const std::string& type, const sched::HardwareCatalog& catalog, double batch,
                     model::Model& model) {
  const size_t equals = type.find('=');
  const std::string name = type.substr(0, equals);
  const std::string sheet = equals == std::string::npos ? name : type.substr(equals + 1);
  const model::Hardware* hardware = catalog.Find(sheet);
  if (name.empty() || hardware == nullptr) {
    return base::InvalidArgument("--types: no datasheet '{}' exists; known datasheets: {}", sheet, catalog.Names());
  }
  return sched::AddAnalyticProfiles(model, name, *hardware, batch);
}

absl::Status Write(const model::Profile& profile, const std::string& file) {
  profile::v1::Profile message;
  model::ToProto(profile, message);
  const bool json = std::filesystem::path(file).extension() == ".json";
  const std::string text = json ? model::ToJson(message, true) : model::ToYaml(message);
  if (!file.empty() && file != "-") return WriteOutput(file, text);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Run(const ProfileFlags& flags) {
  MEDLEY_ASSIGN_OR_RETURN(const sched::HardwareCatalog catalog, ReadHardware(flags.hardware));
  if (flags.list) {
    PrintList(catalog);
    return absl::OkStatus();
  }
  if (flags.model.empty()) return base::InvalidArgument("nothing to do: use --analytic MODEL or --list");
  if (flags.types.empty())
    return base::InvalidArgument("--analytic needs --types with names of datasheets, for example --types cpu,v100");
  model::Profile profile;
  profile.profile_batch_size = flags.batch;
  MEDLEY_ASSIGN_OR_RETURN(profile.model, ReadModel(flags.model));
  for (const std::string& type : flags.types) {
    const absl::Status added = AddType(type, catalog, flags.batch, profile.model);
    if (!added.ok()) return base::Annotate(added, flags.model);
  }
  return Write(profile, flags.output);
}

}  // namespace

void AddProfile(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("profile", "Print datasheets of machines, or estimate a model's profile from them");
  const auto flags = std::make_shared<ProfileFlags>();
  command->add_option("--analytic", flags->model,
                      "file with the model to estimate: a layer table, a profile or a planning request");
  command
      ->add_option("--types", flags->types,
                   "datasheets, for example cpu,v100; NAME=DATASHEET gives the resource type another name")
      ->delimiter(',');
  command->add_option("--batch", flags->batch, "samples per step on one unit")
      ->check(CLI::Range(1, kMaxBatch))
      ->capture_default_str();
  command->add_option(
      "-o,--output", flags->output,
      "file to write the profile to, JSON if its name ends in .json, else YAML; default: standard output");
  command->add_option("--hardware", flags->hardware, "file with datasheets to use instead of the built-in ones");
  command->add_flag("--list", flags->list, "print the datasheets");
  command->callback([flags, &exit_status] {
    const absl::Status done = Run(*flags);
    if (!done.ok()) std::fprintf(stderr, "medley profile: %s\n", base::Message(done).c_str());
    exit_status = done.ok() ? 0 : 1;
  });
}

}  // namespace medley::cli
