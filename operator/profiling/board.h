// The progress of the profiles that jobs want and that are not stored yet. Jobs read it to plan, pools to fill their
// condition Profiled. Thread-safe. Kept in memory only: the profile controller fills it again after a start.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "operator/records/profile_id.h"

namespace medley::ops::profiling {

class Board {
 public:
  // Stores the progress; nullopt removes it (the profile is stored, or no job wants it). Returns true when something
  // changed.
  bool Set(const ProfileId& id, const std::optional<ProfileProgress>& progress);
  // Profiles of which nothing is known until Set is called for them: a process that has just begun to lead looks at
  // them one after the other.
  void Expect(const std::set<ProfileId>& ids);
  // True while a profile of the pool is expected.
  bool Expects(const std::string& pool) const;
  std::optional<ProfileProgress> Find(const ProfileId& id) const;
  // For one pool, in the order of the ids.
  std::vector<ProfileProgress> OfPool(const std::string& pool) const;

 private:
  mutable base::Mutex mutex_;
  std::map<ProfileId, ProfileProgress> open_ ABSL_GUARDED_BY(mutex_);
  std::set<ProfileId> expected_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops::profiling
