// The profiles of one run: those that the cache has are given to the cluster before it starts, and those that it has
// measured are kept afterwards. Not thread-safe: one owner.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/run/manifests.h"
#include "cli/run/profile_cache.h"
#include "kube/client.h"

namespace medley::cli {

class KeptProfiles {
 public:
  // `worker`: the program medley-worker. `measure`: measure again what is kept. The manifests are those that are
  // applied.
  // Borrows the clock.
  KeptProfiles(base::Clock& clock, const Manifests& manifests, const std::filesystem::path& worker, bool measure);

  // The objects with which the cluster starts: the profiles, signed, and the Secret with the key that signs them. None:
  // nothing is kept.
  std::vector<kube::Object> TakeObjects();
  // "pool local: measured on ... for an earlier run; --measure measures again".
  const std::vector<std::string>& remarks() const { return remarks_; }
  // Keeps what the cluster has measured so far. Never fails: a profile that cannot be written is measured again.
  void Keep(kube::Client& client);

 private:
  struct Wanted {
    std::string pool;
    std::string key;
    std::string config_map;  // its name
  };
  std::optional<ProfileCache> cache_;
  std::vector<Wanted> missing_;
  std::vector<kube::Object> objects_;
  std::vector<std::string> remarks_;
};

}  // namespace medley::cli
