#include "operator/builders/worker_env.h"

namespace medley::ops {

using kube::Json;

Json WorkerEnv(const WorkerSettings& settings, const WorkerIdentity& identity) {
  Json env = Json::array();
  const auto set = [&](const char* name, const std::string& value) {
    env.push_back({{"name", name}, {"value", value}});
  };
  set("MEDLEY_JOB_NAME", identity.job);
  set("MEDLEY_JOB_UID", identity.job_uid);
  set("MEDLEY_MEMBER", identity.member);
  set("MEDLEY_POOL", identity.pool);
  set("MEDLEY_SPEC_FILE", std::string(kSpecFolder) + "/spec.json");
  set("MEDLEY_CREDENTIALS_DIR", identity.is_profiler ? "" : kCredentialsFolder);
  env.push_back({{"name", "MEDLEY_POD_IP"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}});
  set(kCoordinatorVariable, identity.coordinator);
  set("MEDLEY_LISTEN_PORT", std::to_string(settings.listen_port));
  set("MEDLEY_CHECKPOINT_DIR", identity.checkpoint_dir);
  if (identity.coordinator_term > 0) set("MEDLEY_COORDINATOR_TERM", std::to_string(identity.coordinator_term));
  if (!identity.termination_log.empty()) set("MEDLEY_TERMINATION_LOG", identity.termination_log);
  set("MEDLEY_METRICS_PORT", std::to_string(settings.metrics_port));
  if (!settings.metrics_token_digests.empty()) set("MEDLEY_METRICS_TOKEN_SHA256", settings.metrics_token_digests);
  set("TMPDIR", kTmpFolder);
  if (identity.on_gpu) {
    set("MEDLEY_DEVICE", "cuda");
    if (identity.gpu_memory >= 1) {
      set("MEDLEY_DEVICE_MEMORY", std::to_string(static_cast<int64_t>(identity.gpu_memory)));
    }
    set("NVIDIA_DRIVER_CAPABILITIES", "compute,utility");  // what NVIDIA's container runtime mounts
  }
  set("OMP_NUM_THREADS", std::to_string(identity.threads));
  return env;
}

void SetVariable(const std::string& name, const std::string& value, Json& container) {
  Json& env = container["env"];
  if (!env.is_array()) env = Json::array();
  std::erase_if(env.get_ref<Json::array_t&>(), [&](const Json& each) { return each.value("name", "") == name; });
  env.push_back({{"name", name}, {"value", value}});
}

}  // namespace medley::ops
