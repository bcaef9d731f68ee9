#include "operator/runtime/retry.h"

#include "common/base/backoff.h"
#include "common/base/status.h"
#include "kube/errors.h"

namespace medley::ops {

absl::Status RetryOnConflict(base::Clock& clock, uint64_t seed, std::stop_token stop,
                             const std::function<absl::Status()>& attempt) {
  constexpr int kTries = 5;
  base::Backoff backoff({.first = base::milliseconds(10), .max = base::milliseconds(10), .factor = 1.0, .jitter = 0.1},
                        seed);
  for (int tries = 1;; ++tries) {
    absl::Status status = attempt();
    if (!kube::IsConflict(status) || tries == kTries) return status;
    if (!clock.SleepFor(backoff.Next(), stop)) return base::Cancelled("retrying a conflicting update: stopped");
  }
}

absl::StatusOr<kube::Object> UpdateWithRetry(kube::Client& client, const kube::Resource& resource, const kube::Key& key,
                                             std::string_view subresource, base::Clock& clock, uint64_t seed,
                                             std::stop_token stop,
                                             const std::function<absl::Status(kube::Object&)>& change) {
  kube::Object stored;
  const absl::Status status = RetryOnConflict(clock, seed, stop, [&]() -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(stored, client.Get(resource, key));
    kube::Object copy = stored;
    MEDLEY_RETURN_IF_ERROR(change(copy));
    if (copy.json() == stored.json()) return absl::OkStatus();
    MEDLEY_ASSIGN_OR_RETURN(stored, client.Update(resource, copy, subresource));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return stored;
}

}  // namespace medley::ops
