// What is known of the profiles that jobs want and that are not stored yet, for all who plan or report. Thread-safe.
// Lost with the process: the controller of profiles fills it again.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "common/base/mutex.h"
#include "operator/records/profile_id.h"

namespace medley::ops::profiling {

class Board {
 public:
  // nullopt: the profile is stored, or nobody wants it. True when that is news.
  bool Set(const ProfileId& id, const std::optional<ProfileProgress>& progress);
  std::optional<ProfileProgress> Find(const ProfileId& id) const;
  // Of one pool, in the order of the ids.
  std::vector<ProfileProgress> OfPool(const std::string& pool) const;

 private:
  mutable base::Mutex mutex_;
  std::map<ProfileId, ProfileProgress> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops::profiling
