#include "worker/data/sample_load.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "worker/data/memory_estimate.h"
#include "worker/data/sample_lock.h"

namespace medley::worker {
namespace {

constexpr size_t kMostSampleFiles = 8;  // in a folder
// A file that was changed later than so before it was read may be changed again at the same time of its file system.
constexpr int64_t kTimeStep = 50'000'000;  // ns

class SampleLoad {
 public:
  SampleLoad(const SampleSource& samples, const model::SourceSpec& source, const model::DataSpec& spec,
             const Transform* transform, const LoadOptions& options, ReadSamples read)
      : samples_(samples), source_(source), spec_(spec), transform_(transform), options_(options), read_(read) {}

  absl::StatusOr<LoadedSamples> Load() {
    MEDLEY_ASSIGN_OR_RETURN(files_, IdentitiesOf(samples_.paths));
    absl::StatusOr<LoadedSamples> loaded = LoadFiles();
    MEDLEY_RETURN_IF_ERROR(loaded.status());
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<FileIdentity> after, IdentitiesOf(samples_.paths));
    for (size_t i = 0; i < files_.size(); ++i) {
      const FileIdentity& before = files_[i];
      if (before.size == after[i].size && before.written == after[i].written && before.inode == after[i].inode) {
        continue;
      }
      return base::FailedPrecondition("{}: the file was changed while it was read; train on a file that nobody writes",
                                      before.path);
    }
    return loaded;
  }

 private:
  absl::StatusOr<LoadedSamples> LoadFiles() {
    if (options_.place.folder.empty()) return read_(nullptr, options_);
    const absl::StatusOr<DataMemory> memory = EstimateMemory(source_, spec_, options_.root);
    if (!memory.ok() || memory->peak <= options_.place.most_in_memory) return read_(nullptr, options_);
    key_ = SampleKey(files_, source_, spec_, transform_, options_.embedding_rows);
    path_ = options_.place.folder / (kSamplesPrefix + key_);
    if (options_.place.shared) {
      MEDLEY_ASSIGN_OR_RETURN(std::optional<LoadedSamples> kept, Reuse());
      if (kept) return *std::move(kept);
    }
    std::string why = WhyNoPlace(options_.place.folder, memory->disk);
    if (why.empty()) {
      absl::StatusOr<LoadedSamples> loaded = options_.place.shared ? ReuseOrWrite(why) : Write(options_, why);
      if (loaded.ok() || why.empty()) return loaded;
    }
    Say(fmt::format("the rows of {} are kept in the memory of this process, because {}", samples_.name, why));
    MEDLEY_RETURN_IF_ERROR(CheckFitInMemory(*memory, samples_.name, CurrentMemoryRoom()));
    return read_(nullptr, options_);
  }

  // The samples that this or another process has kept.
  absl::StatusOr<std::optional<LoadedSamples>> Reuse() {
    auto file = SampleFile::Open(path_, key_, options_.stop, options_.on_piece);
    if (file.ok()) {
      TouchSamples(path_);
      return LoadedSamples{.facts = (*file)->facts(), .rows = {}, .file = *file};
    }
    if (file.status().code() == absl::StatusCode::kCancelled) return file.status();
    if (file.status().code() == absl::StatusCode::kDataLoss && !std::exchange(said_damaged_, true)) {
      Say(fmt::format("{}; the rows are read from {} again", base::Message(file.status()), samples_.name));
    }
    return std::nullopt;
  }

  // Waits while another process makes the same file.
  absl::StatusOr<LoadedSamples> ReuseOrWrite(std::string& why) {
    base::SystemClock system;
    base::Clock& clock = options_.clock != nullptr ? *options_.clock : system;
    bool waited = false;
    const auto on_wait = [&] {
      if (std::exchange(waited, true)) return;
      Say(fmt::format("another process of this machine reads {}: waiting for its rows", samples_.name));
    };
    const std::filesystem::path path = options_.place.folder / (kSampleLockPrefix + key_);
    MEDLEY_ASSIGN_OR_RETURN(const std::optional<SampleLock> lock,
                            SampleLock::Take(path, clock, options_.stop, on_wait));
    if (waited || lock) {  // it may be there since the first look
      MEDLEY_ASSIGN_OR_RETURN(std::optional<LoadedSamples> kept, Reuse());
      if (kept) return *std::move(kept);
    }
    if (!lock) return Write(options_, why);
    LoadOptions options = options_;
    options.on_piece = [&] {
      lock->Touch();
      if (options_.on_piece) options_.on_piece();
    };
    absl::StatusOr<LoadedSamples> loaded = Write(options, why);
    if (!std::filesystem::exists(path_)) lock->MadeNothing();
    return loaded;
  }

  // `why` is empty, or why the error is one of the disk.
  absl::StatusOr<LoadedSamples> Write(const LoadOptions& options, std::string& why) {
    RemoveUnfinished(options.place.folder);
    SampleTarget target(options.place, key_, files_);
    const absl::Status begun = target.Begin();
    absl::StatusOr<LoadedSamples> loaded = begun.ok() ? read_(&target, options) : begun;
    if (!target.disk().ok()) why = base::Message(target.disk());
    return loaded;
  }

  void Say(const std::string& sentence) const {
    if (options_.say) options_.say(sentence);
  }

  const SampleSource& samples_;
  const model::SourceSpec& source_;
  const model::DataSpec& spec_;
  const Transform* const transform_;
  const LoadOptions& options_;
  const ReadSamples read_;
  std::vector<FileIdentity> files_;
  std::string key_;
  std::filesystem::path path_;
  bool said_damaged_ = false;
};

}  // namespace

absl::Status SampleTarget::Begin() {
  const absl::StatusOr<BlockFile> probe = BlockFile::CreateUnnamed(place_.folder);
  MEDLEY_RETURN_IF_ERROR(OfDisk(probe.status()));
  const absl::StatusOr<int64_t> now = probe->ChangedAt();
  MEDLEY_RETURN_IF_ERROR(OfDisk(now.status()));
  began_at_ = *now;
  return absl::OkStatus();
}

absl::Status SampleTarget::OfDisk(absl::Status status) {
  if (!status.ok()) disk_ = status;
  return status;
}

absl::StatusOr<std::unique_ptr<SampleFileWriter>> SampleTarget::Create(const SampleCounts& counts,
                                                                       const SampleFacts& facts) {
  auto writer = SampleFileWriter::Create(place_.folder, place_.shared, counts, facts);
  MEDLEY_RETURN_IF_ERROR(OfDisk(writer.status()));
  return writer;
}

absl::StatusOr<LoadedSamples> SampleTarget::Finish(SampleFileWriter& writer, SampleFacts facts) {
  const std::filesystem::path path = MayShare() ? place_.folder / (kSamplesPrefix + key_) : std::filesystem::path();
  auto file = writer.Finish(key_, path);
  MEDLEY_RETURN_IF_ERROR(OfDisk(file.status()));
  RemoveOldSamples(place_.folder, kMostSampleFiles);
  return LoadedSamples{.facts = std::move(facts), .rows = {}, .file = *std::move(file)};
}

// Whether the identity of the files would be another one if they had been changed since they were identified.
bool SampleTarget::MayShare() const {
  std::vector<std::string> paths;
  for (const FileIdentity& file : files_) {
    if (file.changed + kTimeStep > began_at_) return false;
    paths.push_back(file.path);
  }
  const auto after = IdentitiesOf(paths);
  return after.ok() && *after == files_;
}

absl::StatusOr<LoadedSamples> LoadSamples(const SampleSource& samples, const model::SourceSpec& source,
                                          const model::DataSpec& spec, const Transform* transform,
                                          const LoadOptions& options, ReadSamples read) {
  return SampleLoad(samples, source, spec, transform, options, read).Load();
}

std::string DigestOfBoth(const std::string& rows, const std::string& validation) {
  return base::HashHex(rows + validation) + base::HashHex(validation + rows);
}

}  // namespace medley::worker
