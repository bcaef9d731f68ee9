#include "operator/profiling/board.h"

#include <algorithm>

namespace medley::ops::profiling {

bool Board::Set(const ProfileId& id, const std::optional<ProfileProgress>& progress) {
  base::MutexLock lock(mutex_);
  const bool was_expected = expected_.erase(id) > 0;
  if (!progress) return open_.erase(id) > 0 || was_expected;
  const auto [entry, fresh] = open_.try_emplace(id, *progress);
  if (fresh) return true;
  if (entry->second == *progress) return was_expected;
  entry->second = *progress;
  return true;
}

void Board::Expect(const std::set<ProfileId>& ids) {
  base::MutexLock lock(mutex_);
  expected_.insert(ids.begin(), ids.end());
}

bool Board::Expects(const std::string& pool) const {
  base::MutexLock lock(mutex_);
  return std::any_of(expected_.begin(), expected_.end(), [&](const ProfileId& id) { return id.pool == pool; });
}

std::optional<ProfileProgress> Board::Find(const ProfileId& id) const {
  base::MutexLock lock(mutex_);
  const auto found = open_.find(id);
  return found == open_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ProfileProgress> Board::OfPool(const std::string& pool) const {
  base::MutexLock lock(mutex_);
  std::vector<ProfileProgress> found;
  for (const auto& [id, progress] : open_) {
    if (id.pool == pool) found.push_back(progress);
  }
  return found;
}

}  // namespace medley::ops::profiling
