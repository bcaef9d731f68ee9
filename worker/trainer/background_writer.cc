#include "worker/trainer/background_writer.h"

#include <utility>

#include "common/base/status.h"
#include "worker/trainer/restore_error.h"

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

absl::StatusOr<CheckpointFileEntry> BackgroundWriter::WriteFile(const Volume& volume, const File& file,
                                                                const FileProgress& progress) {
  if (progress.cancelled()) return base::Cancelled("the checkpoint was given up");
  MEDLEY_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::Create(volume, file.folder, file.header));
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
          written.set_digest(entry->digest);
          done(std::move(report));
        };
      });
  if (!posted) done(base::Unavailable("the volume has not answered since an earlier checkpoint"));
}

absl::Status ReadBounded(const std::string& what, std::stop_token stop, std::function<absl::Status()> read) {
  VolumeThread thread;
  return RestoreError(OfTheVolume(thread.Run(what, kReadTimeout, std::move(stop), std::move(read))));
}

}  // namespace medley::worker
