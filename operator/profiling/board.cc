#include "operator/profiling/board.h"

namespace medley::ops::profiling {

bool Board::Set(const ProfileId& id, const std::optional<ProfileProgress>& progress) {
  base::MutexLock lock(mutex_);
  if (!progress) return open_.erase(id) > 0;
  const auto [entry, fresh] = open_.try_emplace(id, *progress);
  if (fresh) return true;
  if (entry->second == *progress) return false;
  entry->second = *progress;
  return true;
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
