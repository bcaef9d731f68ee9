#include "scheduler-service/handlers/policy_store.h"

#include <algorithm>
#include <system_error>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

constexpr char kExtension[] = ".policy";

}  // namespace

std::map<std::string, PolicyStore::LoadedPolicy> PolicyStore::List(
    const std::map<std::string, LoadedPolicy>& known) const {
  std::map<std::string, LoadedPolicy> out;
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder_, error), end; !error && file != end; file.increment(error)) {
    if (file->path().extension() != kExtension || out.size() >= kMaxPolicies) continue;
    std::error_code stat_error;
    const auto changed = file->last_write_time(stat_error);
    const auto size = stat_error ? 0 : file->file_size(stat_error);
    if (stat_error) continue;  // the file was deleted meanwhile
    const std::string name = file->path().stem().string();
    const auto old = known.find(name);
    if (old != known.end() && old->second.changed == changed && old->second.size == size) {
      out.insert(*old);
      continue;
    }
    auto bytes = base::ReadFile(file->path(), kMaxBytes);
    if (bytes.ok()) {
      out[name] = {changed, size, std::make_shared<const std::string>(*std::move(bytes))};
      base::log::Info("read a policy file", {{"name", name}, {"bytes", std::to_string(size)}});
    } else {
      base::log::Warn("reading a policy file failed", {{"name", name}, {"error", base::ToString(bytes.status())}});
    }
  }
  return out;
}

void PolicyStore::Scan() {
  if (folder_.empty()) return;
  std::map<std::string, LoadedPolicy> known;
  {
    base::MutexLock lock(mutex_);
    known = policies_;
  }
  std::map<std::string, LoadedPolicy> found = List(known);
  const auto equal = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.policy == b.second.policy;
  };
  const bool same = std::equal(found.begin(), found.end(), known.begin(), known.end(), equal);
  if (same) return;
  base::MutexLock lock(mutex_);
  policies_ = std::move(found);
  ++version_;
}

PolicyStore::Policy PolicyStore::Find(const std::string& name) const {
  base::MutexLock lock(mutex_);
  const auto found = policies_.find(name);
  return found == policies_.end() ? nullptr : found->second.policy;
}

std::string PolicyStore::Names() const {
  base::MutexLock lock(mutex_);
  std::string out;
  for (const auto& [name, kept] : policies_) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "none" : out;
}

uint64_t PolicyStore::version() const {
  base::MutexLock lock(mutex_);
  return version_;
}

}  // namespace medley::sched
