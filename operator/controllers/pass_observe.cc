// Telling the scheduling service what the job measures, so that its predictions get better.
#include "common/model/job_spec.h"
#include "operator/controllers/job_pass.h"
#include "operator/planning/job_observation.h"

namespace medley::ops {

// Whatever goes wrong here is not the job's trouble: the next observation tells as much.
void JobPass::TellScheduler() {
  if (observed_ == nullptr || !IsComparable(*record_, *observed_)) {
    memory_.comparable_generation = 0;
    return;
  }
  if (memory_.comparable_generation != observed_->generation) {
    memory_.comparable_generation = observed_->generation;
    memory_.comparable_since = steady_;
  }
  if (steady_ < memory_.comparable_since + deps_.options.observe_window) return;
  const auto& sent_at = memory_.observation_sent_at;
  if (sent_at && steady_ < *sent_at + deps_.options.observe_interval) return;
  memory_.observation_sent_at = steady_;  // also when it cannot be built: not again at once
  const auto spec = model::ParseJobSpec(job_->spec.dump());
  if (!spec.ok()) return;
  const std::string hash = model::ProfileHash(*spec);
  std::vector<model::Profile> profiles;
  for (const std::string& pool : TrainerPools(*record_)) {
    auto profile = StoredProfile(hash, pool);
    if (!profile.ok() || !*profile) return;
    profiles.push_back(**std::move(profile));
  }
  auto observation = BuildJobObservation(*job_, *record_, *observed_, profiles);
  if (observation) deps_.observations.Offer(*std::move(observation));
}

}  // namespace medley::ops
