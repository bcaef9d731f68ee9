// Who serves the logs of pods, and who reads them now. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>

#include "common/base/mutex.h"
#include "localcluster/log_reader.h"

namespace medley::kube::apiserver {

class LogAccess {
 public:
  // `reader` is borrowed until the next Set; null: nobody serves logs. Ends what is being read from
  // the one before, and waits for it.
  void Set(LogReader* reader);
  bool serving() const;

  // LogReader::ReadLog; ends early when `stop` is requested or another reader is set. Errors:
  // Unavailable (nobody serves logs), those of the reader.
  absl::Status Read(const Key& pod, const LogOptions& options, const std::stop_token& stop,
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

}  // namespace medley::kube::apiserver
