// Fetches the finished model of a job from its checkpoint volume.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "cli/cluster/connection.h"
#include "common/base/clock.h"

namespace medley::cli {

struct DownloadOptions {
  std::string job;
  std::filesystem::path to;                              // must be free, or hold an earlier model (run/model_folder.h)
  std::string image;                                     // of medley-worker; empty: that of the job's coordinator
  base::nanoseconds start_timeout = base::seconds(180);  // until the pod answers
};

struct Downloaded {
  int files = 0;
  int64_t bytes = 0;
};

// Calls `say` with what it waits for. Deletes its pod in every case but that of a kill; the pod then ends by itself.
// Errors: those of GetJob and MakeReaderPod; FailedPrecondition (the job is not Complete), AlreadyExists (`to` is
// something else), DeadlineExceeded (the pod does not start or cannot be reached; says why), DataLoss (a file differs
// from the list), Cancelled.
absl::StatusOr<Downloaded> DownloadModel(const Cluster& cluster, base::Clock& clock, const DownloadOptions& options,
                                         std::stop_token stop, const std::function<void(const std::string&)>& say);

}  // namespace medley::cli
