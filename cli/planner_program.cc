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
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::cli {

std::filesystem::path OwnFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

absl::StatusOr<model::PlanResult> AnswerOfPlannerProgram(const std::filesystem::path& folder,
                                                         const model::PlanRequest& request) {
  std::error_code error;
  const std::filesystem::path program = folder / "medley-planner";
  if (folder.empty() || !std::filesystem::exists(program, error)) {
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
  const std::string command = fmt::format("'{}' --log-level=off --answer='{}'", program.string(), file.string());
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return base::Internal("{} cannot be started", program.string());
  std::string answer;
  char buffer[1 << 16];
  for (size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) answer.append(buffer, count);
  if (pclose(pipe) != 0) return base::InvalidArgument("planner {} of medley-planner failed", request.planner.name);
  scheduler::v1::PlanResponse response;
  MEDLEY_RETURN_IF_ERROR(model::ParseText(answer, response));
  return model::FromProto(response);
}

}  // namespace medley::cli
