// medley-scheduler: the scheduling service. Serves until SIGTERM or SIGINT and then exits with code 0. If an address is
// in use or an option is invalid, it prints an error and exits with code 1.
#include "common/base/log.h"
#include "scheduler-service/app/options.h"
#include "scheduler-service/app/program.h"
#include "scheduler-service/process/run.h"

int main(int argc, char** argv) {
  medley::sched::ServiceOptions options;
  if (const auto code = ParseOptions(argc, argv, options)) return *code;
  medley::base::log::Configure("scheduler", medley::base::log::ParseLevel(options.log_level));
  return medley::sched::RunUntilSignal(
      "medley-scheduler", [&](const auto& wait_for_end) { return medley::sched::Serve(options, wait_for_end); });
}
