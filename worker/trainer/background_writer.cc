#include "worker/trainer/background_writer.h"

#include <utility>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr base::seconds kReadTimeout{1800};  // the coordinator's own deadline for a preparation comes first

// The coordinator would take NotFound for a wrong job, and DeadlineExceeded for a broken exchange with another member.
absl::Status OfTheVolume(const absl::Status& status) {
  if (absl::IsNotFound(status)) return base::DataLoss("{}", base::Message(status));
  if (absl::IsDeadlineExceeded(status)) return base::Internal("{}", base::Message(status));
  return status;
}

}  // namespace

void FileProgress::Advance() {
  base::MutexLock lock(mutex_);
  ++pieces_;
  changed_.NotifyAll();
}

absl::StatusOr<CheckpointFileEntry> BackgroundWriter::WriteFile(const Volume& volume, const File& file,
                                                                FileProgress& progress) {
  if (progress.cancelled()) return base::Cancelled("the checkpoint was given up");
  MEDLEY_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::Create(volume, file.folder, file.name));
  MEDLEY_RETURN_IF_ERROR(file.add(*writer, progress));
  return writer->Finish();
}

void BackgroundWriter::Write(int64_t step, File file, Done done) {
  Cancel();
  last_ = std::make_shared<FileProgress>();
  const bool posted = thread_.Post(
      [step, done, volume = volume_, file = std::move(file), progress = last_]() mutable -> VolumeThread::Deliver {
        const absl::StatusOr<CheckpointFileEntry> entry = WriteFile(volume, file, *progress);
        file = {};  // frees the snapshot
        return [step, done = std::move(done), progress, entry] {
          if (progress->cancelled()) return;
          if (!entry.ok()) return done(entry.status());
          job::v1::Checkpointed report;
          report.set_step(step);
          job::v1::CheckpointFile& written = *report.add_files();
          written.set_name(entry->name);
          written.set_bytes(entry->bytes);
          written.set_crc32(entry->crc32);
          done(std::move(report));
        };
      });
  if (!posted) done(base::Unavailable("the volume has not answered since an earlier checkpoint"));
}

absl::Status BackgroundWriter::WriteAndWait(File file, base::nanoseconds timeout, std::stop_token stop,
                                            const std::function<void()>& advanced) {
  const std::string what = "writing " + file.folder + "/" + file.name;
  const auto progress = std::make_shared<FileProgress>();
  const bool posted = thread_.Post([volume = volume_, file = std::move(file), progress]() -> VolumeThread::Deliver {
    absl::Status status = WriteFile(volume, file, *progress).status();
    base::MutexLock lock(progress->mutex_);
    progress->status_ = std::move(status);
    progress->changed_.NotifyAll();
    return {};
  });
  if (!posted) return base::Internal("{}: the volume has not answered since an earlier file", what);
  int64_t seen = 0;
  while (true) {
    {
      base::MutexLock lock(progress->mutex_);
      const auto changed = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return progress->status_.has_value() || progress->pieces_ != seen;
      };
      const bool in_time = progress->changed_.WaitFor(progress->mutex_, stop, timeout, changed);
      if (progress->status_) return OfTheVolume(*progress->status_);
      if (stop.stop_requested() || !in_time) {
        progress->Cancel();
        if (stop.stop_requested()) return base::Cancelled("{} was stopped", what);
        return base::Internal("{}: the volume did not answer within {} s", what, base::ToSeconds(timeout));
      }
      seen = progress->pieces_;
    }
    if (advanced) advanced();
  }
}

absl::Status ReadBounded(const std::string& what, std::stop_token stop, std::function<absl::Status()> read) {
  VolumeThread thread;
  return OfTheVolume(thread.Run(what, kReadTimeout, std::move(stop), std::move(read)));
}

}  // namespace medley::worker
