// A volume whose calls fail or block on request, for tests. Thread-safe. It must outlive the threads that use it, also
// abandoned ones.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/checkpoint/files.h"

namespace medley::worker {

class FaultyFiles final : public Files {
 public:
  enum class Call { kList, kRead, kCreate, kWrite, kSync, kRename };
  ~FaultyFiles() override { Release(); }

  std::string read_error_in;  // reading a file fails when its path contains this; "": never

  // Blocks every call of this kind, from now on, until Release. `only_in`: of List, only for this folder.
  void Block(Call call, const std::filesystem::path& only_in = {}) {
    base::MutexLock lock(mutex_);
    blocked_.insert(call);
    if (call == Call::kList) block_list_in_ = only_in;
  }
  // From now on List returns this error; OK: it works again. `only_in`: for this folder only.
  void FailList(absl::Status error, const std::filesystem::path& only_in = {}) {
    base::MutexLock lock(mutex_);
    list_error_ = std::move(error);
    fail_list_in_ = only_in;
    failed_lists_ = 0;
  }
  // Waits until List has failed this often since FailList; returns false when it has not within 30 s.
  bool WaitForFailedLists(int count) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, std::chrono::seconds(30),
                            [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return failed_lists_ >= count; });
  }
  void Release() {
    base::MutexLock lock(mutex_);
    blocked_.clear();
    changed_.NotifyAll();
  }
  // Waits until a call is blocked; returns false when none is within a minute.
  bool WaitForBlocked() {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, std::chrono::seconds(60),
                            [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return waiting_ > 0; });
  }

  absl::StatusOr<std::vector<std::string>> List(const std::filesystem::path& folder) override {
    if (ListMayBlock(folder)) Pass(Call::kList);
    {
      base::MutexLock lock(mutex_);
      if (!list_error_.ok() && (fail_list_in_.empty() || fail_list_in_ == folder)) {
        ++failed_lists_;
        changed_.NotifyAll();
        return list_error_;
      }
    }
    return Files::List(folder);
  }
  absl::StatusOr<int> OpenToRead(const std::filesystem::path& path) override {
    const absl::StatusOr<int> fd = Files::OpenToRead(path);
    base::MutexLock lock(mutex_);
    if (fd.ok()) paths_[*fd] = path.string();
    return fd;
  }
  absl::StatusOr<size_t> Read(int fd, void* out, size_t bytes) override {
    Pass(Call::kRead);
    {
      base::MutexLock lock(mutex_);
      if (!read_error_in.empty() && paths_[fd].find(read_error_in) != std::string::npos) {
        return base::Internal("reading: i/o error");
      }
    }
    return Files::Read(fd, out, bytes);
  }
  absl::StatusOr<int> CreateTemporary(std::string& pattern) override {
    Pass(Call::kCreate);
    return Files::CreateTemporary(pattern);
  }
  absl::Status Write(int fd, std::string_view bytes) override {
    Pass(Call::kWrite);
    return Files::Write(fd, bytes);
  }
  absl::Status Sync(int fd) override {
    Pass(Call::kSync);
    return Files::Sync(fd);
  }
  absl::Status Rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    Pass(Call::kRename);
    return Files::Rename(from, to);
  }

 private:
  bool ListMayBlock(const std::filesystem::path& folder) {
    base::MutexLock lock(mutex_);
    return block_list_in_.empty() || block_list_in_ == folder;
  }
  void Pass(Call call) {
    base::MutexLock lock(mutex_);
    if (!blocked_.contains(call)) return;
    ++waiting_;
    changed_.NotifyAll();
    changed_.Wait(mutex_, {}, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !blocked_.contains(call); });
    --waiting_;
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  std::set<Call> blocked_ ABSL_GUARDED_BY(mutex_);
  std::filesystem::path block_list_in_ ABSL_GUARDED_BY(mutex_);
  absl::Status list_error_ ABSL_GUARDED_BY(mutex_);
  std::filesystem::path fail_list_in_ ABSL_GUARDED_BY(mutex_);
  int failed_lists_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, std::string> paths_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::worker
