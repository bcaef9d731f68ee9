#include "common/model/program_validate.h"

#include "common/base/status.h"
#include "common/model/field_rules.h"
#include "common/model/progress_pattern.h"

namespace medley::model {

absl::Status ValidateProgram(const ProgramSpec& program) {
  MEDLEY_RETURN_IF_ERROR(ItemsInBounds("spec.program.command", program.command.size()));
  if (program.command.empty() || program.command.front().empty())
    return base::InvalidArgument("spec.program.command: names no program");
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.program.samplesPerStep", program.samples_per_step));
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.program.steps", program.steps));
  if (!program.progress_log.empty()) {
    const absl::Status pattern = ProgressPattern::Make(program.progress_log).status();
    if (!pattern.ok()) return base::Annotate(pattern, "spec.program.progress.log");
  }
  const int ways = (program.progress_log.empty() ? 0 : 1) + (program.progress_endpoint ? 1 : 0) +
                   (program.progress_tensor_board.empty() ? 0 : 1);
  if (ways != 1) {
    return base::InvalidArgument("spec.program.progress: must have one of log, endpoint: true and tensorBoard");
  }
  return absl::OkStatus();
}

}  // namespace medley::model
