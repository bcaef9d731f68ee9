// Finishes checkpoint files (fsync, rename) in a background thread while training continues. One file at a time.
// Not thread-safe: one caller. The destructor joins the thread.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "medley/job/v1/coordinator.pb.h"
#include "worker/checkpoint/writer.h"

namespace medley::worker {

class BackgroundWriter {
 public:
  using Done = std::function<void(absl::StatusOr<job::v1::Checkpointed>)>;

  // Calls `done` when the file is on disk. With a null `writer` there is no file, and `done` is called at once. Waits
  // for an earlier file first.
  void Finish(int64_t step, std::unique_ptr<CheckpointWriter> writer, Done done) {
    if (thread_.joinable()) thread_.join();
    job::v1::Checkpointed report;
    report.set_step(step);
    if (writer == nullptr) return done(std::move(report));
    thread_ = std::jthread([report = std::move(report), writer = std::move(writer), done = std::move(done)]() mutable {
      const absl::StatusOr<CheckpointFileEntry> entry = writer->Finish();
      if (!entry.ok()) return done(entry.status());
      job::v1::CheckpointFile& file = *report.add_files();
      file.set_name(entry->name);
      file.set_bytes(entry->bytes);
      file.set_crc32(entry->crc32);
      done(std::move(report));
    });
  }

 private:
  std::jthread thread_;
};

}  // namespace medley::worker
