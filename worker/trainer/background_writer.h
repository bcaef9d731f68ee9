// Writes this member's part of checkpoints in a background thread while training continues. The caller takes a snapshot
// and hands over how to write it.
//
// A volume that does not answer blocks neither the caller nor the destructor (VolumeThread). Not thread-safe: one
// caller.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "worker/checkpoint/files.h"
#include "worker/checkpoint/volume_thread.h"
#include "worker/checkpoint/writer.h"

namespace medley::worker {

class BackgroundWriter {
 public:
  using Done = std::function<void(absl::StatusOr<job::v1::Checkpointed>)>;
  // Adds the snapshot to the file. It runs in the background thread and owns what it uses. It should return Cancelled
  // soon after `cancelled` is set.
  using Add = std::function<absl::Status(CheckpointWriter& writer, const std::atomic<bool>& cancelled)>;
  struct File {
    std::string folder;
    std::string name;
    Add add;
  };

  explicit BackgroundWriter(Volume volume) : volume_(std::move(volume)) {}
  ~BackgroundWriter() { Cancel(); }

  // Calls `done` from the background thread when the file is on disk or could not be written, but not after Cancel or a
  // later call: the checkpoint was given up then.
  void Write(int64_t step, File file, Done done);
  // Ends a Write that has not finished.
  void Cancel();
  // Writes a file and waits for it. Errors: those of the volume; Cancelled; Internal when the time is over.
  absl::Status WriteAndWait(File file, base::nanoseconds timeout, std::stop_token stop);

 private:
  static absl::StatusOr<CheckpointFileEntry> WriteFile(const Volume& volume, const File& file,
                                                       const std::atomic<bool>& cancelled);

  const Volume volume_;
  std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);  // of the last Write
  // One file is written, and one waits until the cancelled one before it has ended.
  VolumeThread thread_{{.max_queue = 1}};
};

// Runs `read`, which reads a checkpoint, with a deadline. It owns what it uses, because it may be abandoned. Errors:
// those of `read`, but DataLoss instead of NotFound; Cancelled; Internal when the time is over.
absl::Status ReadBounded(const std::string& what, std::stop_token stop, std::function<absl::Status()> read);

}  // namespace medley::worker
