// Writes this member's part of checkpoints in a background thread while training continues. The caller takes a snapshot
// and hands over how to write it.
//
// A volume that does not answer blocks neither the caller nor the destructor (VolumeThread). Not thread-safe: one
// caller.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
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

// Whether the caller still wants one file. Thread-safe.
class FileProgress {
 public:
  // Ends the file soon.
  void Cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

 private:
  std::atomic<bool> cancelled_ = false;
};

class BackgroundWriter {
 public:
  using Done = std::function<void(absl::StatusOr<job::v1::Checkpointed>)>;
  // Adds the snapshot to the file. It runs in the background thread and owns what it uses. It should return Cancelled
  // soon after Cancel.
  using Add = std::function<absl::Status(CheckpointWriter& writer, const FileProgress& progress)>;
  struct File {
    std::string folder;
    CheckpointFileHeader header;
    Add add;
  };

  explicit BackgroundWriter(Volume volume) : volume_(std::move(volume)) {}
  ~BackgroundWriter() { Cancel(); }

  // Calls `done` from the background thread when the file is on disk or could not be written, but not after Cancel or a
  // later call: the checkpoint was given up then.
  void Write(int64_t step, File file, Done done);
  // Ends a Write that has not finished.
  void Cancel() { last_->Cancel(); }

 private:
  static absl::StatusOr<CheckpointFileEntry> WriteFile(const Volume& volume, const File& file,
                                                       const FileProgress& progress);

  const Volume volume_;
  std::shared_ptr<FileProgress> last_ = std::make_shared<FileProgress>();  // of the last Write
  // One file is written, and one waits until the cancelled one before it has ended.
  VolumeThread thread_{{.max_queue = 1}};
};

// Runs `read`, which reads a checkpoint, with a deadline. It owns what it uses, because it may be abandoned. Errors:
// those of `read`, but DataLoss instead of NotFound; Cancelled; Internal when the time is over. All are marked as
// RestoreError.
absl::Status ReadBounded(const std::string& what, std::stop_token stop, std::function<absl::Status()> read);

}  // namespace medley::worker
