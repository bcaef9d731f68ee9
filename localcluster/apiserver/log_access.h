// Gives the server's handlers access to the log reader, which may be exchanged while they read. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>

#include "common/base/mutex.h"
#include "localcluster/log_reader.h"

namespace medley::localcluster::apiserver {

class LogAccess {
 public:
  // `reader` is borrowed until the next Set; null: no logs are served. Cancels all reads from the previous reader and
  // waits for them to end.
  void Set(LogReader* reader);
  bool serving() const;

  // As LogReader::ReadLog. Ends early if `stop` is requested or another reader is set. Errors: Unavailable if there is
  // no reader, and those of the reader.
  absl::Status Read(const kube::Key& pod, const LogOptions& options, const std::stop_token& stop,
                    const std::function<bool(std::string_view)>& sink);

 private:
  struct Term {
    LogReader* reader = nullptr;
    std::stop_source over;
    int readers = 0;
  };
  mutable base::Mutex mutex_;
  base::CondVar left_;
  std::shared_ptr<Term> term_ ABSL_GUARDED_BY(mutex_) = std::make_shared<Term>();
};

}  // namespace medley::localcluster::apiserver
