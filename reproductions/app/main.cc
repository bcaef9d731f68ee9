// medley-planner: the planners of the scheduling service as a process of their own. Serves until SIGTERM or SIGINT and
// then exits with code 0. If an address is in use or an option is invalid, it prints an error and exits with code 1.
#include <cstdio>

#include "common/base/log.h"
#include "common/base/status.h"
#include "reproductions/app/options.h"
#include "reproductions/app/program.h"
#include "scheduler-service/process/run.h"

int main(int argc, char** argv) {
  medley::reproductions::app::PlannerProgramOptions options;
  if (const auto code = ParseOptions(argc, argv, options)) return *code;
  medley::base::log::Configure("planner", medley::base::log::ParseLevel(options.log_level));
  if (options.list) {
    medley::reproductions::app::PrintPlanners();
    return 0;
  }
  if (!options.answer.empty()) {
    const absl::Status status = medley::reproductions::app::AnswerOnce(options.answer);
    if (!status.ok()) std::fprintf(stderr, "medley-planner: %s\n", medley::base::Message(status).c_str());
    return status.ok() ? 0 : 1;
  }
  return medley::sched::RunUntilSignal("medley-planner", [&](const auto& wait_for_end) {
    return medley::reproductions::app::Serve(options, wait_for_end);
  });
}
