#include "operator/controllers/pod_creation.h"

#include <utility>

#include "common/base/status.h"

namespace medley::ops {

absl::Status CreateSignedPod(const JobDeps& deps, kube::Object pod) {
  deps.signed_pods.Sign(pod);
  const auto made = deps.client.Create(kube::resources::Pods(), pod);
  if (!made.ok()) return made.status();
  deps.metrics.CountCreatedPods(1);
  if (deps.signed_pods.Created(*made)) return absl::OkStatus();
  const absl::Status deleted = deps.client.Delete(kube::resources::Pods(), made->key(), {.uid = made->uid()});
  return base::Aborted(
      "create pod {}: the API server says that it was created at {}, minutes from this machine's time: "
      "set the clocks; the pod is made again with the API server's time{}",
      made->key().ToString(), made->String("/metadata/creationTimestamp"),
      deleted.ok() ? "" : "; deleting it failed: " + base::ToString(deleted));
}

}  // namespace medley::ops
