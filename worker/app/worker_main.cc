#include "worker/app/worker_main.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "common/base/denormals.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/app/become_program.h"
#include "worker/app/choose_device.h"
#include "worker/app/predictor.h"
#include "worker/app/roles.h"
#include "worker/app/temporary_folder.h"
#include "worker/app/unit_cpus.h"
#include "worker/collective/shared_memory.h"
#include "worker/device/device.h"
#include "worker/object_files/open_volume.h"
#include "worker/places/places.h"
#include "worker/sandbox/confine.h"
#include "worker/torchscript/read.h"
#include "worker/trainer/member.h"

namespace medley::worker {
namespace {

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Before the job's threads exist, and before a model is read.
absl::Status ConfineRole(const Environment& env, const std::filesystem::path& temporary) {
  Confinement confinement;
  confinement.writable.push_back(temporary);
  if (!env.checkpoint_root.empty() && !env.checkpoints.of_objects())
    confinement.writable.push_back(env.checkpoint_root);
  // Below /dev in most containers, but a pod can name another path, and the process node has none there.
  if (!env.termination_log.empty()) confinement.files.push_back(env.termination_log);
  if (env.samples_shared) {
    std::error_code error;  // one that cannot be created is not used (SamplePlace)
    std::filesystem::create_directories(env.samples_folder, error);
    if (!error) confinement.writable.push_back(env.samples_folder);
  }
  if (!env.spec.model.torchscript_uri.empty()) {
    const absl::StatusOr<std::string> reader = torchscript::ReaderProgram();
    if (reader.ok()) confinement.programs.push_back(*reader);  // without it the model cannot be read, which says so
  }
  confinement.gpus = device::BuiltForGpus() && env.device != DeviceChoice::kCpu;
  MEDLEY_ASSIGN_OR_RETURN(const std::string missing, Confine(confinement));
  if (!missing.empty()) base::log::Info("this process is confined in part", {{"why", missing}});
  return absl::OkStatus();
}

Need NeedOf(const std::string& role) {
  return role == "profiler" ? Need::kSpec : role == "coordinator" ? Need::kCoordinator : Need::kMember;
}

// What this process must become. A bad environment is reported later.
std::optional<OtherProgram> OtherProgramFor(const std::string& role) {
  if (role == "predictor") return OtherProgram::kTorch;
  if (role != "trainer" && role != "profiler") return std::nullopt;
  const absl::StatusOr<Environment> env = ReadEnvironment(Variable, NeedOf(role));
  if (!env.ok()) return std::nullopt;
  if (env->spec.program) return OtherProgram::kAgent;
  const bool torch = env->spec.model.imported() || MayComputeOnGpu(*env, Variable);
  return torch ? std::optional(OtherProgram::kTorch) : std::nullopt;
}

// Needs no job: the export says all. It has no network, and writes nothing but temporary files.
absl::StatusOr<int> RunConfinedPredictor(const std::filesystem::path& folder, const BlockMaker& make_block) {
  MEDLEY_ASSIGN_OR_RETURN(const auto temporary, TemporaryFolder::Make());
  MEDLEY_RETURN_IF_ERROR(Confine({.writable = {temporary->path()}, .offline = true}).status());
  return RunPredictorRole(folder, make_block);
}

absl::StatusOr<int> RunRole(const std::string& role, const BlockMaker& make_block, const Signals& signals) {
  base::SystemClock clock;
  if (role == "files") return RunFilesRole(Variable, clock, signals);
  MEDLEY_ASSIGN_OR_RETURN(Environment env, ReadEnvironment(Variable, NeedOf(role)));
  env.threads = UnitThreads(Variable);
  if (role == "trainer" && env.share_memory) StartMemoryOpener();
  MEDLEY_ASSIGN_OR_RETURN(const auto temporary, TemporaryFolder::Make());
  env.samples_shared = !env.samples_folder.empty();
  if (!env.samples_shared) env.samples_folder = temporary->path();
  MEDLEY_ASSIGN_OR_RETURN(env.checkpoints, OpenVolume(env.checkpoint_root, Variable, env.continue_from));
  MEDLEY_RETURN_IF_ERROR(ConfineRole(env, temporary->path()));
  std::unique_ptr<Places> places;
  if (HasRemotePlaces(env.spec)) {
    MEDLEY_ASSIGN_OR_RETURN(places, Places::Make(Variable, {.cache = env.samples_folder / "places"}, clock));
    MEDLEY_RETURN_IF_ERROR(places->CopyModel(env.spec, signals.stop()));
    // A trainer copies its data while it is already known to the coordinator.
    if (role == "profiler") MEDLEY_RETURN_IF_ERROR(places->CopyData(env.spec.data, signals.stop()));
  }
  if (role == "coordinator") return RunCoordinatorRole(env, clock, signals);
  if (role == "server") return RunServerRole(env, clock, signals);
  if (role == "trainer") return RunTrainerRole(env, places.get(), make_block, clock, signals);
  return RunProfilerRole(env, make_block, clock, signals);
}

int Failed(const std::string& role, const absl::Status& status) {
  std::fprintf(stderr, "medley-worker: %s: %s\n", role.c_str(), base::Message(status).c_str());
  return IsPermanent(status) ? 2 : 1;
}

}  // namespace

int WorkerMain(int argc, char** argv, const BlockMaker& torch) {
  base::FlushDenormals();  // before any thread exists, so that all roles compute alike
  CLI::App app(
      "One process of a Medley training job. Environment variables configure it; worker/app/README.md lists them.");
  std::string role, level = "info", folder;
  bool devices = false;
  CLI::Option* only = app.add_flag("--devices", devices,
                                   "print what this program was built to compute on, a line each (cpu, cuda), and end");
  app.add_option("--role", role, "the role of this process")
      ->excludes(only)
      ->check(CLI::IsMember({"coordinator", "server", "trainer", "profiler", "files", "predictor"}));
  app.add_option("--export", folder, "predictor: the folder of the exported model");
  app.add_option("--log-level", level, "debug, info, warn, error, off")->envname("MEDLEY_LOG_LEVEL");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (devices) {
    std::printf("cpu\n%s", device::BuiltForGpus() ? "cuda\n" : "");
    return 0;
  }
  if (role.empty()) {
    std::fprintf(stderr, "medley-worker: --role is required\n");
    return 2;
  }
  base::log::Configure("worker/" + role, base::log::ParseLevel(level));
  if (const auto other = OtherProgramFor(role); other && torch == nullptr) {
    return Failed(role, Become(*other, argv));  // before signals are held
  }
  const Signals signals;
  const BlockMaker& make_block = torch == nullptr ? BlockMaker(MakeModelBlock) : torch;
  const absl::StatusOr<int> code =
      role == "predictor" ? RunConfinedPredictor(folder, make_block) : RunRole(role, make_block, signals);
  return code.ok() ? *code : Failed(role, code.status());
}

}  // namespace medley::worker
