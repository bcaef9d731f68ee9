#include "cli/planner_program.h"

#include <absl/cleanup/cleanup.h>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <system_error>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/text.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::cli {
namespace {

// What a command prints. Errors: Internal where it cannot be started or fails; it has printed why.
absl::StatusOr<std::string> OutputOf(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return base::Internal("{} cannot be started", command);
  std::string output;
  char buffer[1 << 16];
  for (size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, count);
  if (pclose(pipe) != 0) return base::Internal("{} failed", command);
  return output;
}

}  // namespace

std::filesystem::path OwnFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

bool HasPlannerProgram(const std::filesystem::path& folder) {
  std::error_code error;
  return !folder.empty() && std::filesystem::exists(folder / "medley-planner", error);
}

absl::StatusOr<std::string> ListOfPlannerProgram(const std::filesystem::path& folder) {
  if (!HasPlannerProgram(folder)) return base::NotFound("{} has no program medley-planner", folder.string());
  return OutputOf(fmt::format("'{}' --list", (folder / "medley-planner").string()));
}

absl::StatusOr<model::PlanResult> AnswerOfPlannerProgram(const std::filesystem::path& folder,
                                                         const model::PlanRequest& request) {
  std::error_code error;
  if (!HasPlannerProgram(folder)) {
    return base::InvalidArgument(
        "planner.name: '{}' is unknown here, and the program medley-planner, which has more planners, is not in {}: "
        "./dev programs reproductions builds it",
        request.planner.name, folder.empty() ? "the folder of this program" : folder.string());
  }
  scheduler::v1::PlanRequest message;
  model::ToProto(request, message);
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("medley-plan-{:016x}.json", base::SystemSeed());
  const absl::Cleanup remove = [&] { std::filesystem::remove(file, error); };
  MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(file, model::ToJson(message)));
  const auto answer =
      OutputOf(fmt::format("'{}' --log-level=off --answer='{}'", (folder / "medley-planner").string(), file.string()));
  if (!answer.ok()) return base::InvalidArgument("planner {} of medley-planner failed", request.planner.name);
  scheduler::v1::PlanResponse response;
  MEDLEY_RETURN_IF_ERROR(model::ParseText(*answer, response));
  return model::FromProto(response);
}

}  // namespace medley::cli
