// Two leaders at once: a pass of one that was deposed must change nothing, and one that has just taken over must not
// act on a cache that lags behind the last writes of the other.
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/leader_term.h"
#include "operator/controllers/job_pass.h"

namespace medley::ops {

// What the coordinator tells of newer leaders, before anything is made for a plan that may be old.
absl::Status JobPass::CheckTerm() {
  const int64_t term = deps_.leader_term();
  if (observed_ == nullptr || observed_->leader_term <= term) return absl::OkStatus();
  return Deposed(model::StaleTerm(term, observed_->leader_term), "look at the coordinator");
}

// OK unless `refusal` says that a newer leader was served: then the pass ends. Either this process has
// lost its lead and will hear of it soon, or the Lease was deleted and its terms began anew: then the
// elector takes a newer one.
absl::Status JobPass::Deposed(const absl::Status& refusal, const char* what) {
  const std::optional<int64_t> newer = model::NewerTerm(refusal);
  if (!newer) return absl::OkStatus();
  deps_.heard_of_term(*newer);
  return base::Annotate(refusal, what);
}

// The first pass after a change of leaders reads what it goes on from; later ones know what they wrote.
kube::ObjectPtr JobPass::Current(const kube::Resource& resource, const kube::Key& key, kube::ObjectPtr cached) const {
  if (!first_ || deps_.leader_term() == 0) return cached;
  auto now = deps_.client.Get(resource, key);
  if (absl::IsNotFound(now.status())) return nullptr;
  if (now.ok()) return std::make_shared<const kube::Object>(*std::move(now));
  log::Debug("the cache is used", {{"object", key.ToString()}, {"error", base::ToString(now.status())}});
  return cached;
}

}  // namespace medley::ops
