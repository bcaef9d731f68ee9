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

absl::StatusOr<CheckpointFileEntry> BackgroundWriter::WriteFile(const Volume& volume, const File& file,
                                                                const std::atomic<bool>& cancelled) {
  if (cancelled) return base::Cancelled("the checkpoint was given up");
  MEDLEY_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::Create(volume, file.folder, file.name));
  MEDLEY_RETURN_IF_ERROR(file.add(*writer, cancelled));
  return writer->Finish();
}

void BackgroundWriter::Write(int64_t step, File file, Done done) {
  Cancel();
  cancelled_ = std::make_shared<std::atomic<bool>>(false);
  const bool posted = thread_.Post([step, done, volume = volume_, file = std::move(file),
                                    cancelled = cancelled_]() mutable -> VolumeThread::Deliver {
    const absl::StatusOr<CheckpointFileEntry> entry = WriteFile(volume, file, *cancelled);
    file = {};  // frees the snapshot
    return [step, done = std::move(done), cancelled, entry] {
      if (*cancelled) return;
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

void BackgroundWriter::Cancel() { *cancelled_ = true; }

absl::Status BackgroundWriter::WriteAndWait(File file, base::nanoseconds timeout, std::stop_token stop) {
  const std::string what = "writing " + file.folder + "/" + file.name;
  const auto cancelled = std::make_shared<std::atomic<bool>>(false);
  const absl::Status status = thread_.Run(what, timeout, std::move(stop), [volume = volume_, file, cancelled] {
    return WriteFile(volume, file, *cancelled).status();
  });
  *cancelled = true;
  return OfTheVolume(status);
}

absl::Status ReadBounded(const std::string& what, std::stop_token stop, std::function<absl::Status()> read) {
  VolumeThread thread;
  return OfTheVolume(thread.Run(what, kReadTimeout, std::move(stop), std::move(read)));
}

}  // namespace medley::worker
