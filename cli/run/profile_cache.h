// Profiles that `medley run` keeps between runs, so that the same model on the same machine is measured once.
//
// A profile is known by what a measurement depends on: the job (model, schema, batch size, data files with their sizes
// and times, templates of its pods), the pool (but not its price or its limit), the processor, and the program that
// measured. Each is a file KEY.json below the folder. At most kMostProfiles are kept, the ones used last; each is used
// for kProfileAge. Damaged, too large and outdated files are ignored and replaced.
//
// The cache never fails a run: what cannot be read is measured, and what cannot be written is measured the next time.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::cli {

inline constexpr size_t kMostProfiles = 256;
inline constexpr base::nanoseconds kProfileAge = std::chrono::hours(24 * 30);

// $MEDLEY_CACHE, else $XDG_CACHE_HOME/medley, else $HOME/.cache/medley; nullopt: the first is "off", or none is set.
// `variable` returns the value of a variable of the environment, or null.
std::optional<std::filesystem::path> CacheFolder(const char* (*variable)(const char* name));

// A sentence about the processors of this machine: their model, number and memory.
std::string ProcessorText();

// model::ProfileHash of the job; empty: it has no valid spec.
std::string ProfileHashOfJob(const kube::Object& job);

// The file name without ".json"; empty: the job has no valid spec. `worker`: the program medley-worker, beside which
// medley-worker-torch may lie. Reads the sizes and times of both and of the job's files, but not their content.
std::string ProfileKey(const kube::Object& job, const kube::Object& pool, const std::string& processor,
                       const std::filesystem::path& worker);

struct KeptProfile {
  std::string pool;
  kube::Object config_map;  // of the operator, not signed
  std::string measured;     // RFC 3339
};

class ProfileCache {
 public:
  // `folder`: of the cache; it need not exist. Borrows the clock.
  ProfileCache(std::filesystem::path folder, base::Clock& clock) : folder_(std::move(folder)), clock_(clock) {}

  // nullopt: not kept, too old, or unreadable. Marks it as used.
  std::optional<KeptProfile> Find(const std::string& key, const kube::Object& job, const std::string& pool) const;
  // Keeps the profile that the operator has stored in `config_map`, unless this key has one that is still used; removes
  // the profiles that were used least recently beyond kMostProfiles. Errors: those of the file system.
  absl::Status Keep(const std::string& key, const kube::Object& config_map) const;

 private:
  absl::Status Prune() const;

  const std::filesystem::path folder_;
  base::Clock& clock_;
};

}  // namespace medley::cli
