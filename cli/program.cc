// medley program FILE: prints the program of a plan, or of the plan that is made for a planning request.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/program_input.h"
#include "common/base/status.h"
#include "common/program/compile.h"
#include "common/program/text.h"

namespace medley::cli {
namespace {

struct ProgramFlags {
  PlanFlags plan;
  bool evaluation = false;
};

absl::Status RunProgram(const ProgramFlags& flags) {
  MEDLEY_ASSIGN_OR_RETURN(const ProgramInput input, ReadProgramInput(flags.plan));
  const auto program = flags.evaluation ? program::CompileEvaluation(input.plan, input.profile.model)
                                        : program::Compile(input.plan, input.profile.model);
  if (!program.ok()) return base::Annotate(program.status(), flags.plan.file);
  std::printf("program %s\n%s", program::Hash(*program).c_str(), program::Text(*program, input.names).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddProgram(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "program", "Print what each machine of a plan does in a step: the program that workers run and `simulate` times");
  const auto flags = std::make_shared<ProgramFlags>();
  command
      ->add_option("file", flags->plan.file,
                   "file with an execution plan or an answer of the scheduling service, with --profile; or what medley "
                   "plan takes, which is planned first")
      ->required();
  AddPlanFlags(*command, flags->plan);
  command->add_flag("--evaluation", flags->evaluation, "the program that computes metrics on test data");
  command->callback([flags, &exit_status] {
    const absl::Status status = RunProgram(*flags);
    if (status.ok()) return;
    std::fprintf(stderr, "medley program: %s\n", base::Message(status).c_str());
    exit_status = absl::IsFailedPrecondition(status) ? 2 : 1;
  });
}

}  // namespace medley::cli
