#include <iostream>
#include <utility>

#include "common/base/memory_limit.h"
#include "common/base/status.h"
#include "common/certificates/job_certificates.h"
#include "worker/app/choose_device.h"
#include "worker/app/job_identity.h"
#include "worker/app/job_tls.h"
#include "worker/app/roles.h"
#include "worker/app/runtime_probe.h"
#include "worker/app/unit_cpus.h"
#include "worker/params/optimizer_of.h"
#include "worker/profiler/profiler.h"

namespace medley::worker {

namespace {

// Tensors of a job are encrypted, so those of the probe are. A profiler has no Secret of a job: its CA is of its own.
absl::StatusOr<JobTls> ProbeTls(Environment env, base::Clock& clock) {
  if (env.ca_certificate.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const certificates::KeyPair authority,
                            certificates::MakeJobAuthority(env.job_uid, clock.Now()));
    env.ca_certificate = authority.certificate;
    env.ca_key = authority.key;
  }
  return JobTls::Make(env, clock);
}

}  // namespace

absl::StatusOr<int> RunProfilerRole(const Environment& env, BlockMaker make_block, base::Clock& clock,
                                    const Signals& signals) {
  ProfilerOptions options;
  options.job = env.spec;
  options.profile_id = IdentityOf(env.spec_json).profile;
  options.resource_type = env.pool;
  options.budget_seconds = base::ToSeconds(env.profile_time);
  options.clock = &clock;
  options.threads = std::make_shared<ComputeThreads>(env.threads);  // as a trainer of this pool
  MEDLEY_ASSIGN_OR_RETURN(options.device, ChooseDevice(env));
  if (const auto quota = CgroupQuota("/"); quota && options.device == nullptr) {
    options.cores = quota->cores;
    options.cpu_period_seconds = quota->period_seconds;
  }
  options.make_block = std::move(make_block);
  options.output = &std::cout;
  options.stop = signals.stop();
  options.place = PlaceIn(env.samples_folder, env.samples_shared, base::MemoryLimit());
  MEDLEY_ASSIGN_OR_RETURN(const Optimizer optimizer, OptimizerOf(env.spec.training));
  MEDLEY_ASSIGN_OR_RETURN(const JobTls tls, ProbeTls(env, clock));
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<RuntimeProbe> probe,
                          RuntimeProbe::Create({.address = env.pod_ip.empty() ? "127.0.0.1" : env.pod_ip,
                                                .micro_batches = env.spec.training.micro_batches,
                                                .optimizer = optimizer,
                                                .tls = tls.tensors()},
                                               clock));
  options.probe = probe.get();
  MEDLEY_RETURN_IF_ERROR(RunProfiler(options));
  return 0;
}

}  // namespace medley::worker
