// medley-agent: the trainer and the profiler of a job with spec.program, which run it (worker/agent). It is linked
// statically and needs nothing of an image, so that a pod can take it from Medley's image into any other one
// (--install). Environment: worker/app/README.md.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/app/roles.h"
#include "worker/app/temporary_folder.h"
#include "worker/trainer/member.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Copies this program to `path`, for a container of another image in the same pod. A pod's init container may be run
// again after a part of it.
absl::Status Install(const fs::path& path) {
  const fs::path part = path.string() + ".part";
  std::error_code error;
  fs::copy_file("/proc/self/exe", part, fs::copy_options::overwrite_existing, error);
  if (!error) fs::permissions(part, fs::perms(0555), error);
  if (!error) fs::rename(part, path, error);
  if (error) return base::Internal("copying this program to {}: {}", path.string(), error.message());
  return absl::OkStatus();
}

absl::StatusOr<int> RunRole(const std::string& role, const Signals& signals) {
  base::SystemClock clock;
  const bool profiler = role == "profiler";
  MEDLEY_ASSIGN_OR_RETURN(Environment env, ReadEnvironment(Variable, profiler ? Need::kSpec : Need::kMember));
  if (!env.spec.program) return base::InvalidArgument("the job has no spec.program, which this program runs");
  MEDLEY_ASSIGN_OR_RETURN(const auto temporary, TemporaryFolder::Make());
  env.checkpoints = Volume(env.checkpoint_root);  // the CRD refuses an object store for programs
  // A program may do what its pod may: nobody knows here what it needs.
  if (profiler) return RunProgramProfilerRole(env, temporary->path(), clock, signals);
  return RunAgentRole(env, clock, signals);
}

int Failed(const std::string& role, const absl::Status& status) {
  std::fprintf(stderr, "medley-agent: %s: %s\n", role.c_str(), base::Message(status).c_str());
  return IsPermanent(status) ? 2 : 1;
}

int AgentMain(int argc, char** argv) {
  CLI::App app(
      "Runs the program of a Medley job on one unit. Environment variables configure it; worker/app/README.md lists "
      "them.");
  std::string role, level = "info", install;
  CLI::Option* only = app.add_option("--install", install, "copy this program to this path, and end");
  app.add_option("--role", role, "the role of this process")
      ->excludes(only)
      ->check(CLI::IsMember({"trainer", "profiler"}));
  app.add_option("--log-level", level, "debug, info, warn, error, off")->envname("MEDLEY_LOG_LEVEL");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (!install.empty()) {
    const absl::Status installed = Install(install);
    return installed.ok() ? 0 : Failed("install", installed);
  }
  if (role.empty()) {
    std::fprintf(stderr, "medley-agent: --role is required\n");
    return 2;
  }
  base::log::Configure("worker/" + role, base::log::ParseLevel(level));
  const Signals signals;
  const absl::StatusOr<int> code = RunRole(role, signals);
  return code.ok() ? *code : Failed(role, code.status());
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) { return medley::worker::AgentMain(argc, argv); }
