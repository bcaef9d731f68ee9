#include "cli/plan_input.h"

#include <absl/strings/numbers.h>

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/job_file.h"
#include "cli/model/layer_table.h"
#include "cli/planner_program.h"
#include "cli/request_prices.h"
#include "common/base/file.h"
#include "common/base/gzip.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/convert.h"
#include "common/model/profile.h"
#include "common/model/text.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/plan.h"
#include "worker/cut/cut.h"
#include "worker/exported/archive.h"

namespace medley::cli {
namespace {

constexpr int64_t kMaxBytes = int64_t{16} << 20;

// Replaces the request's model, and the values that belong to it, with the profile's.
absl::Status UseProfile(const std::string& file, model::PlanRequest& request) {
  MEDLEY_ASSIGN_OR_RETURN(model::Profile profile, ReadProfile(file));
  request.model = std::move(profile.model);
  request.profile_id = std::move(profile.id);
  request.allreduces = std::move(profile.allreduces);
  if (profile.profile_batch_size > 0) request.training.profile_batch_size = profile.profile_batch_size;
  return absl::OkStatus();
}

absl::Status UsePolicy(const PlanFlags& flags, model::PolicyOptions& options) {
  if (!flags.policy.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(options.trained, base::ReadFile(flags.policy, kMaxBytes));
  }
  options.inference_only = options.inference_only || flags.inference_only;
  options.return_policy = options.return_policy || !flags.save_policy.empty();
  return absl::OkStatus();
}

// Values as in YAML: true, false, a number, or else a text.
absl::Status UseOptions(const std::vector<std::string>& flags, model::OptionValues& options) {
  for (const std::string& flag : flags) {
    const size_t equals = flag.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return base::InvalidArgument("--option {}: must be NAME=VALUE; medley plan --planners lists the options", flag);
    }
    const std::string text = flag.substr(equals + 1);
    model::OptionValue& value = options[flag.substr(0, equals)];
    double number = 0;
    if (text == "true" || text == "false") {
      value = text == "true";
    } else if (absl::SimpleAtod(text, &number) && std::isfinite(number)) {
      value = number;
    } else {
      value = text;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<model::PlanRequest> RequestOfJob(const PlanFlags& flags) {
  if (flags.file == "-") return base::InvalidArgument("a job file cannot be read from standard input; name the file");
  if (flags.profile.empty()) {
    return base::InvalidArgument(
        "{}: a plan for a job file needs the times of its layers on each pool: name them with --profile (medley "
        "profile --analytic estimates them), or start the job, which measures them, and use medley plan --from JOB",
        flags.file);
  }
  MEDLEY_ASSIGN_OR_RETURN(const model::Profile profile, ReadProfile(flags.profile));
  MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, ReadJobFile(flags.file, profile));
  MEDLEY_RETURN_IF_ERROR(AdjustRequest(flags, request));
  return request;
}

// The model of flags.file on the devices of flags.devices.
absl::StatusOr<model::PlanRequest> RequestOnDevices(const PlanFlags& flags) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, ReadText(flags.devices));
  scheduler::v1::PlanRequest message;
  const absl::Status parsed = model::ParseText(text, message);
  if (!parsed.ok()) return base::Annotate(parsed, flags.devices);
  if (message.has_model()) {
    return base::InvalidArgument("{}: model: the model is that of {}; leave it out here", flags.devices, flags.file);
  }
  message.set_objective(scheduler::v1::OBJECTIVE_STEP_TIME);
  auto request = model::FromProto(message);
  if (!request.ok()) return base::Annotate(request.status(), flags.devices);
  MEDLEY_ASSIGN_OR_RETURN(request->model, ReadModel(flags.file, flags.depth));
  MEDLEY_RETURN_IF_ERROR(AdjustRequest(flags, *request));
  return request;
}

absl::StatusOr<model::PlanRequest> ReadRequest(const PlanFlags& flags) {
  if (!flags.devices.empty()) return RequestOnDevices(flags);
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, ReadText(flags.file));
  if (IsJobFile(text)) return RequestOfJob(flags);
  scheduler::v1::PlanRequest message;
  const absl::Status parsed = model::ParseText(text, message);
  if (!parsed.ok()) return base::Annotate(parsed, flags.file);
  auto request = model::FromProto(message);
  if (!request.ok()) return base::Annotate(request.status(), flags.file);
  MEDLEY_RETURN_IF_ERROR(AdjustRequest(flags, *request));
  return request;
}

// Archives of torch.export are ZIP files.
bool IsArchive(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  char head[2] = {};
  return file != "-" && in.read(head, 2) && head[0] == 'P' && head[1] == 'K';
}

// By a planner of this program, or else of medley-planner.
absl::StatusOr<model::PlanResult> Answer(const PricedRequest& priced) {
  const base::SystemClock clock;
  const sched::Registry registry = sched::BuiltinPlanners();
  const absl::Status own = registry.CheckName(priced.request.planner.name, sched::SupplyOf(priced.request));
  if (own.ok()) return sched::MakePlan(priced.request, priced.origin, registry, clock, {});
  if (!HasPlannerProgram(OwnFolder())) {
    return base::InvalidArgument(
        "{}. More planners, those of papers, are in the program medley-planner, which is not in "
        "{}: ./dev programs reproductions builds it",
        base::Message(own), OwnFolder().string());
  }
  MEDLEY_ASSIGN_OR_RETURN(model::PlanResult result, AnswerOfPlannerProgram(OwnFolder(), priced.request));
  result.catalog_revision = priced.origin.catalog_revision;
  result.price_time = priced.origin.price_time;
  if (result.execution_plan) {
    result.execution_plan->provenance.catalog_revision = priced.origin.catalog_revision;
    result.execution_plan->provenance.price_time = priced.origin.price_time;
  }
  return result;
}

}  // namespace

absl::StatusOr<std::string> ReadText(const std::string& file) {
  MEDLEY_ASSIGN_OR_RETURN(std::string bytes, base::ReadFile(file == "-" ? "/dev/stdin" : file, kMaxBytes));
  if (!base::IsGzip(bytes)) return bytes;
  auto text = base::Gunzip(bytes, kMaxBytes);
  return text.ok() ? text : base::Annotate(text.status(), file);
}

absl::StatusOr<model::Profile> ReadProfile(const std::string& file) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, ReadText(file));
  profile::v1::Profile message;
  const absl::Status parsed = model::ParseText(text, message);
  if (!parsed.ok()) return base::Annotate(parsed, file);
  auto profile = model::FromProto(message);
  return profile.ok() ? std::move(profile) : base::Annotate(profile.status(), file);
}

void AddPlanFlags(CLI::App& command, PlanFlags& flags) {
  command.add_option("--planner", flags.planner,
                     "planner to use instead of the request's (medley plan --planners lists them)");
  command.add_option("--option", flags.options, "NAME=VALUE: an option of the planner; may be given several times")
      ->take_all()
      ->allow_extra_args(false);
  command.add_option(
      "--devices", flags.devices,
      "file with resources and a cluster, but no model: plan the model of FILE (a layer table, a profile, or "
      "what torch.export.save wrote) for the fewest seconds of a step on these devices");
  command.add_option("--depth", flags.depth, "with --devices and an archive of torch.export: spec.model.cut.depth")
      ->check(CLI::Range(0, 32));
  command.add_option("--profile", flags.profile, "profile file whose model to plan instead of the request's");
  command.add_option("--hardware", flags.hardware,
                     "file with datasheets to use instead of the built-in ones (medley profile --list)");
  command.add_option("--seed", flags.seed, "seed to use instead of the request's");
  command.add_option("--prices", flags.prices, "file with prices for resources without a price");
}

absl::StatusOr<model::Model> ReadModel(const std::string& file, int depth) {
  if (IsArchive(file)) {
    MEDLEY_ASSIGN_OR_RETURN(worker::exported::Program program, worker::exported::ReadArchive(file));
    MEDLEY_ASSIGN_OR_RETURN(
        const worker::cut::Cut cut,
        worker::cut::Divide(std::make_shared<const worker::exported::Program>(std::move(program)), {.depth = depth}));
    return LayerTable(std::filesystem::path(file).stem().string(), cut);
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, ReadText(file));
  const auto read = document::Parse(text);
  if (!read.ok()) return base::Annotate(read.status(), file);
  const nlohmann::json& tree = *read;
  scheduler::v1::PlanRequest request;  // also takes the model of the two other kinds of files
  absl::Status parsed;
  if (tree.is_object() && tree.contains("layers")) {
    parsed = model::ParseText(text, *request.mutable_model());
  } else if (tree.is_object() && (tree.contains("profileBatchSize") || !tree.contains("resources"))) {
    profile::v1::Profile profile;
    parsed = model::ParseText(text, profile);
    *request.mutable_model() = profile.model();
  } else {
    parsed = model::ParseText(text, request);
  }
  if (!parsed.ok()) return base::Annotate(parsed, file);
  return model::FromProto(request.model());
}

absl::StatusOr<sched::HardwareCatalog> ReadHardware(const std::string& file) {
  if (file.empty()) return sched::HardwareCatalog::Builtin();
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, ReadText(file));
  auto catalog = sched::HardwareCatalog::Parse(text);
  return catalog.ok() ? std::move(catalog) : base::Annotate(catalog.status(), file);
}

absl::Status AdjustRequest(const PlanFlags& flags, model::PlanRequest& request) {
  if (!flags.profile.empty()) MEDLEY_RETURN_IF_ERROR(UseProfile(flags.profile, request));
  if (!flags.planner.empty()) request.planner.name = flags.planner;
  if (flags.seed) request.planner.seed = *flags.seed;
  MEDLEY_RETURN_IF_ERROR(UseOptions(flags.options, request.planner.options));
  return UsePolicy(flags, request.planner.policy);
}

absl::StatusOr<PricedRequest> ReadPricedRequest(const PlanFlags& flags) {
  MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, ReadRequest(flags));
  return WithPrices(flags, std::move(request), {});
}

absl::StatusOr<PricedRequest> WithPrices(const PlanFlags& flags, model::PlanRequest request,
                                         sched::PriceOrigin origin) {
  const base::SystemClock clock;
  MEDLEY_ASSIGN_OR_RETURN(const sched::HardwareCatalog hardware, ReadHardware(flags.hardware));
  const absl::Status priced = PriceRequest(flags.prices, hardware, clock, request, origin);
  if (!priced.ok()) return flags.file.empty() ? priced : base::Annotate(priced, flags.file);
  return PricedRequest{std::move(request), origin};
}

absl::StatusOr<Planned> PlanFile(const PlanFlags& flags) {
  MEDLEY_ASSIGN_OR_RETURN(PricedRequest priced, ReadPricedRequest(flags));
  return PlanPricedRequest(std::move(priced), flags.file);
}

absl::StatusOr<Planned> PlanPricedRequest(PricedRequest priced, const std::string& what) {
  auto result = Answer(priced);
  if (!result.ok()) return base::Annotate(result.status(), what);
  return Planned{std::move(priced.request), std::move(*result)};
}

}  // namespace medley::cli
