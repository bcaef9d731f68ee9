#include "cli/run/kept_profiles.h"

#include <absl/strings/escaping.h>

#include <cstdlib>
#include <utility>

#include "common/base/secrets.h"
#include "common/base/status.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/records/record_keys.h"

namespace medley::cli {
namespace {

// As the operator of `medley run` names it (operator/app/record_secret.h).
const kube::Key kRecordsSecret{"default", "medley-operator-records"};

const char* Environment(const char* name) { return std::getenv(name); }

}  // namespace

KeptProfiles::KeptProfiles(base::Clock& clock, const Manifests& manifests, const std::filesystem::path& worker,
                           bool measure) {
  const auto folder = CacheFolder(&Environment);
  if (!folder) return;
  cache_.emplace(*folder / "profiles", clock);
  const std::string processor = ProcessorText();
  std::vector<kube::Object> found;
  for (const kube::Object& pool : manifests.pools) {
    const std::string name = pool.key().name;
    const std::string key = ProfileKey(manifests.job, pool, processor, worker);
    if (key.empty()) continue;
    if (auto kept = measure ? std::nullopt : cache_->Find(key, manifests.job, name)) {
      remarks_.push_back(
          fmt::format("pool {}: its profile was measured at {}; --measure measures it again", name, kept->measured));
      found.push_back(std::move(kept->config_map));
    } else {
      missing_.push_back({name, key, ops::ProfileConfigMapName(ProfileHashOfJob(manifests.job), name)});
    }
  }
  if (found.empty()) return;
  const std::string secret = base::RandomToken();
  const ops::RecordKeys keys({secret});
  objects_.emplace_back(kube::resources::Secrets(), kRecordsSecret);
  objects_.back().mutable_json()["type"] = "Opaque";
  objects_.back().mutable_json()["data"] = {{"key", absl::Base64Escape(secret)}};
  for (kube::Object& map : found) {
    keys.Sign(ops::RecordKind::kProfile, "", map);
    objects_.push_back(std::move(map));
  }
}

std::vector<kube::Object> KeptProfiles::TakeObjects() { return std::exchange(objects_, {}); }

void KeptProfiles::Keep(kube::Client& client) {
  if (!cache_ || missing_.empty()) return;
  const auto maps = client.List(kube::resources::ConfigMaps(), {.label_selector = ops::kProfileLabel});
  if (!maps.ok()) return;
  std::erase_if(missing_, [&](const Wanted& wanted) {
    for (const kube::Object& map : maps->items) {
      if (map.key().name == wanted.config_map) return cache_->Keep(wanted.key, map).ok();
    }
    return false;
  });
}

}  // namespace medley::cli
