#include "common/model/program_validate.h"

#include "common/base/status.h"
#include "common/model/progress_pattern.h"

namespace medley::model {

absl::Status ValidateProgram(const ProgramSpec& program) {
  if (program.command.empty() || program.command.front().empty())
    return base::InvalidArgument("spec.program.command: names no program");
  if (!program.progress_log.empty()) {
    const absl::Status pattern = ProgressPattern::Make(program.progress_log).status();
    if (!pattern.ok()) return base::Annotate(pattern, "spec.program.progress.log");
  }
  return absl::OkStatus();
}

}  // namespace medley::model
