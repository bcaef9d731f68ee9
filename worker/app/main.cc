// medley-worker: one process of a training job. Roles and environment: docs/design/runtime.md, worker/app/README.md.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>

#include "common/base/denormals.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/app/roles.h"
#include "worker/app/unit_cpus.h"
#include "worker/device/device.h"
#include "worker/trainer/member.h"

namespace medley::worker {
namespace {

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

absl::StatusOr<int> RunRole(const std::string& role, const Signals& signals) {
  base::SystemClock clock;
  if (role == "files") return RunFilesRole(Variable, clock, signals);
  const Need need = role == "profiler" ? Need::kSpec : role == "coordinator" ? Need::kCoordinator : Need::kMember;
  MEDLEY_ASSIGN_OR_RETURN(Environment env, ReadEnvironment(Variable, need));
  env.threads = UnitThreads(Variable);
  if (role == "coordinator") return RunCoordinatorRole(env, clock, signals);
  if (role == "server") return RunServerRole(env, clock, signals);
  if (role == "trainer") return RunTrainerRole(env, clock, signals);
  return RunProfilerRole(env, clock, signals);
}

int Main(int argc, char** argv) {
  CLI::App app(
      "One process of a Medley training job. Environment variables configure it; worker/app/README.md lists them.");
  std::string role, level = "info";
  bool devices = false;
  CLI::Option* only = app.add_flag("--devices", devices,
                                   "print what this program was built to compute on, a line each (cpu, cuda), and end");
  app.add_option("--role", role, "the role of this process")
      ->excludes(only)
      ->check(CLI::IsMember({"coordinator", "server", "trainer", "profiler", "files"}));
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
  log::Configure("worker/" + role, log::ParseLevel(level));
  const Signals signals;
  const absl::StatusOr<int> code = RunRole(role, signals);
  if (code.ok()) return *code;
  std::fprintf(stderr, "medley-worker: %s: %s\n", role.c_str(), base::Message(code.status()).c_str());
  return IsPermanent(code.status()) ? 2 : 1;
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  medley::base::FlushDenormals();  // before any thread exists, so that all roles compute alike
  return medley::worker::Main(argc, argv);
}
