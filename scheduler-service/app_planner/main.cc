// medley-planner: the planners of the scheduling service as a process of their own. Serves until SIGTERM or SIGINT and
// then exits with code 0. If an address is in use or an option is invalid, it prints an error and exits with code 1.
#include <cstdio>

#include "common/base/log.h"
#include "common/base/status.h"
#include "scheduler-service/app_planner/options.h"
#include "scheduler-service/app_planner/program.h"
#include "scheduler-service/process/run.h"

int main(int argc, char** argv) {
  medley::sched::PlannerProgramOptions options;
  if (const auto code = ParseOptions(argc, argv, options)) return *code;
  medley::log::Configure("planner", medley::log::ParseLevel(options.log_level));
  if (!options.answer.empty()) {
    const absl::Status status = medley::sched::AnswerOnce(options.answer);
    if (!status.ok()) std::fprintf(stderr, "medley-planner: %s\n", medley::base::Message(status).c_str());
    return status.ok() ? 0 : 1;
  }
  return medley::sched::RunUntilSignal(
      "medley-planner", [&](const auto& wait_for_end) { return medley::sched::Serve(options, wait_for_end); });
}
