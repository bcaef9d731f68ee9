#include <unistd.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/memory_limit.h"
#include "common/base/status.h"
#include "worker/agent/agent_role.h"
#include "worker/agent/measure_program.h"
#include "worker/agent/ranks.h"
#include "worker/app/job_identity.h"
#include "worker/app/job_tls.h"
#include "worker/app/make_session.h"
#include "worker/app/roles.h"
#include "worker/app/unit_cpus.h"
#include "worker/profiler/print_profile.h"
#include "worker/trainer/member.h"

namespace medley::worker {
namespace {

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
  return variables;
}

int ProcessesOf(const model::ProgramSpec& program) {
  const char* const gpus = std::getenv("CUDA_VISIBLE_DEVICES");
  return ProcessesOfUnit(program.processes_per_unit, gpus == nullptr ? "" : gpus);
}

}  // namespace

absl::StatusOr<int> RunAgentRole(const Environment& env, base::Clock& clock, const Signals& signals) {
  MEDLEY_ASSIGN_OR_RETURN(const JobTls tls, JobTls::Make(env, clock));
  AgentContext context;
  context.program = &*env.spec.program;
  context.processes = ProcessesOf(*env.spec.program);
  context.run_id = env.job_uid;
  context.ip = env.pod_ip;
  context.environment = OwnEnvironment();
  context.session = MakeSession(env, tls, env.member, job::v1::MEMBER_ROLE_TRAINER, env.pod_ip);
  context.clock = &clock;
  base::log::Info("this member runs a program",
                  {{"command", env.spec.program->command.front()}, {"processes", std::to_string(context.processes)}});
  const SessionOptions session = context.session;
  Member member(session, clock);
  AgentRole role(std::move(context), [&member](job::v1::SessionRequest request) { member.Send(std::move(request)); });
  return RunUntilReleased(member, role, signals, {});
}

absl::StatusOr<int> RunProgramProfilerRole(const Environment& env, const std::string& scratch, base::Clock& clock,
                                           const Signals& signals) {
  MeasureOptions options;
  options.program = *env.spec.program;
  options.checkpoint_folder = env.spec.checkpoint.path;
  options.scratch = scratch;
  options.profile_id = IdentityOf(env.spec_json).profile;
  options.pool = env.pool;
  options.processes = ProcessesOf(*env.spec.program);
  options.sizes = env.profile_sizes;
  options.memory_bytes = base::MemoryLimit();
  options.environment = OwnEnvironment();
  if (const auto quota = CgroupQuota("/")) {
    options.cores = quota->cores;
    options.cpu_period_seconds = quota->period_seconds;
  }
  options.clock = &clock;
  options.stop = signals.stop();
  MEDLEY_ASSIGN_OR_RETURN(const model::Profile profile, MeasureProgram(std::move(options)));
  PrintProfile(profile, std::cout);
  return 0;
}

}  // namespace medley::worker
