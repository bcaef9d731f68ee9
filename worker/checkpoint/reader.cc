#include "worker/checkpoint/reader.h"

#include <algorithm>
#include <utility>

#include "common/base/hasher.h"
#include "common/base/status.h"
#include "worker/checkpoint/format.h"
#include "worker/checkpoint/header.h"

namespace medley::worker {
namespace {

namespace fmtn = checkpoint_format;

// Reads a file in pieces of exact length. Read and Skip return false when the file is too short or cannot be read.
class Source {
 public:
  Source(Files& files, const std::filesystem::path& path) : files_(files), fd_(files.OpenToRead(path)) {
    error_ = fd_.status();
    if (!fd_.ok()) return;
    const absl::StatusOr<int64_t> length = files_.Length(*fd_);
    error_ = length.status();
    if (length.ok()) size_ = static_cast<uint64_t>(*length);
  }
  ~Source() {
    if (fd_.ok()) files_.Close(*fd_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // OK, or the first error of the file system.
  const absl::Status& error() const { return error_; }
  bool Read(void* out, size_t bytes) {
    for (char* at = static_cast<char*>(out); bytes > 0;) {
      const size_t n = Some(at, bytes);
      if (n == 0) return false;
      at += n;
      bytes -= n;
    }
    return error_.ok();
  }
  // Whether the file was so long, when it was opened, that this many bytes follow.
  bool HasMore(uint64_t bytes) const { return error_.ok() && at_ <= size_ && bytes <= size_ - at_; }
  bool Skip(uint64_t bytes) {
    if (error_.ok()) error_ = files_.Skip(*fd_, static_cast<int64_t>(bytes));
    if (error_.ok()) at_ += bytes;
    return error_.ok();
  }
  bool AtEnd() {
    char byte = 0;
    return Some(&byte, 1) == 0 && error_.ok();
  }

 private:
  size_t Some(char* out, size_t bytes) {
    if (!error_.ok()) return 0;
    const absl::StatusOr<size_t> n = files_.Read(*fd_, out, bytes);
    error_ = n.status();
    if (n.ok()) at_ += *n;
    return n.ok() ? *n : 0;
  }

  Files& files_;
  const absl::StatusOr<int> fd_;
  uint64_t size_ = 0;
  uint64_t at_ = 0;  // bytes that were read or skipped
  absl::Status error_;
};

// What the failure to read `source` means: the volume's error, or `damage`. A file that the manifest names but that
// does not exist is damage.
absl::Status WhyUnread(const Source& source, const std::string& name, absl::Status damage) {
  if (source.error().ok()) return damage;
  if (absl::IsNotFound(source.error())) return base::DataLoss("{}: the file does not exist", name);
  return base::Annotate(source.error(), name);
}

struct Section {
  fmtn::SectionHeader header;
  std::string name;
};

bool Plausible(const fmtn::SectionHeader& h) {
  if (h.count_a > fmtn::kMaxFloats || h.count_b > fmtn::kMaxFloats || h.name_bytes > fmtn::kMaxName) return false;
  if (h.kind == fmtn::kDense) return h.width == 0;
  return h.kind == fmtn::kRows && h.name_bytes == 0 && h.width > 0 && h.count_b == h.count_a * h.width;
}

// For a plausible section.
uint64_t PayloadBytes(const fmtn::SectionHeader& h) {
  return h.count_a * (h.kind == fmtn::kRows ? sizeof(uint64_t) : sizeof(float)) + h.count_b * sizeof(float);
}

// Reads one data file section by section.
class DataFile {
 public:
  DataFile(Files& files, const std::filesystem::path& path) : source_(files, path), name_(path.filename().string()) {}

  // Reads the header and checks that the manifest means this file.
  absl::Status Open(const CheckpointManifest& manifest) {
    std::string bytes(kHeaderStart, '\0');
    if (!source_.Read(bytes.data(), bytes.size())) return Cut();
    const absl::StatusOr<size_t> length = HeaderLength(bytes);
    if (!length.ok()) return base::Annotate(length.status(), name_);
    bytes.resize(*length);
    if (!source_.Read(bytes.data() + kHeaderStart, bytes.size() - kHeaderStart)) return Cut();
    const absl::StatusOr<CheckpointFileHeader> header = DecodeHeader(bytes);
    if (!header.ok()) return base::Annotate(header.status(), name_);
    return CheckBelongs(*header, name_, manifest);
  }

  // Reads the next section; returns false at the end mark.
  absl::StatusOr<bool> Next(Section& section) {
    uint32_t crc = 0;
    uint32_t kind = 0;
    if (!source_.Read(&kind, sizeof kind)) return Cut();
    if (kind == fmtn::kEnd) {
      const bool whole = source_.Read(&crc, sizeof crc) && crc == fmtn::Crc32(0, &kind, sizeof kind);
      if (!whole || !source_.AtEnd()) return Cut();
      return false;
    }
    fmtn::SectionHeader& header = section.header;
    header.kind = kind;
    char* const rest = reinterpret_cast<char*>(&header) + sizeof kind;
    if (!source_.Read(rest, sizeof header - sizeof kind) || !source_.Read(&crc, sizeof crc)) return Cut();
    if (header.name_bytes > fmtn::kMaxName) return base::DataLoss("{}: the header of a section is damaged", name_);
    section.name.resize(header.name_bytes);
    if (!source_.Read(section.name.data(), section.name.size())) return Cut();
    const uint32_t found =
        fmtn::Crc32(fmtn::Crc32(0, &header, sizeof header), section.name.data(), section.name.size());
    if (found != crc || !Plausible(header)) return base::DataLoss("{}: the header of a section is damaged", name_);
    if (!source_.HasMore(PayloadBytes(header) + sizeof crc)) return Cut();  // before memory is taken for it
    return true;
  }

  absl::Status Skip(const Section& section) {
    return source_.Skip(PayloadBytes(section.header) + 4) ? absl::OkStatus() : Cut();
  }

  template <typename A>
  absl::Status Payload(const Section& section, std::vector<A>& a, std::vector<float>& b) {
    a.resize(section.header.count_a);
    b.resize(section.header.count_b);
    uint32_t crc = 0;
    if (!source_.Read(a.data(), a.size() * sizeof(A)) || !source_.Read(b.data(), b.size() * sizeof(float)) ||
        !source_.Read(&crc, sizeof crc)) {
      return Cut();
    }
    const uint32_t found =
        fmtn::Crc32(fmtn::Crc32(0, a.data(), a.size() * sizeof(A)), b.data(), b.size() * sizeof(float));
    if (found != crc) return base::DataLoss("{}: the payload of section {} is damaged", name_, section.header.id);
    return absl::OkStatus();
  }

 private:
  absl::Status Cut() const {
    return WhyUnread(source_, name_, base::DataLoss("{}: the file is truncated or damaged", name_));
  }

  Source source_;
  const std::string name_;
};

absl::Status ReadFileSections(const Volume& volume, const CheckpointManifest& manifest, const std::string& name,
                              CheckpointHandlers& handlers) {
  DataFile file(volume.files(), volume / manifest.folder / name);
  MEDLEY_RETURN_IF_ERROR(file.Open(manifest));
  Section section;
  std::vector<uint64_t> keys;
  std::vector<float> weights;
  std::vector<float> values;
  for (;;) {
    MEDLEY_ASSIGN_OR_RETURN(const bool more, file.Next(section));
    if (!more) return absl::OkStatus();
    const int32_t id = section.header.id;
    if (section.header.kind == fmtn::kDense) {
      if (!handlers.dense || (handlers.wanted_dense && !handlers.wanted_dense(id))) {
        MEDLEY_RETURN_IF_ERROR(file.Skip(section));
        continue;
      }
      MEDLEY_RETURN_IF_ERROR(file.Payload(section, weights, values));
      MEDLEY_RETURN_IF_ERROR(handlers.dense(id, section.name, weights, values));
    } else {
      if (!handlers.rows || (handlers.wanted_rows && !handlers.wanted_rows(id))) {
        MEDLEY_RETURN_IF_ERROR(file.Skip(section));
        continue;
      }
      MEDLEY_RETURN_IF_ERROR(file.Payload(section, keys, values));
      MEDLEY_RETURN_IF_ERROR(handlers.rows(id, static_cast<int32_t>(section.header.width), keys, values));
    }
  }
}

absl::StatusOr<std::string> FileDigest(Files& files, const std::filesystem::path& path, int64_t bytes) {
  Source source(files, path);
  const std::string name = path.filename().string();
  std::string buffer(size_t{1} << 20, '\0');
  base::Hasher hasher;
  for (int64_t left = bytes; left > 0;) {
    const size_t n = std::min(buffer.size(), static_cast<size_t>(left));
    if (!source.Read(buffer.data(), n)) return WhyUnread(source, name, base::DataLoss("{}: the file is cut off", name));
    hasher.Add({buffer.data(), n});
    left -= static_cast<int64_t>(n);
  }
  return hasher.Hex();
}

struct WantedCheckpoint {
  std::string_view job_uid;            // empty: any
  std::string_view model_fingerprint;  // empty: any
  const std::string& settings;
};

// Reads the manifest of `folder` and decides whether this job can restore the checkpoint.
absl::Status Examine(const Volume& volume, const std::string& folder, const WantedCheckpoint& wanted,
                     CheckpointManifest& manifest, RejectedCheckpoint::Why& why) {
  using Why = RejectedCheckpoint::Why;
  absl::StatusOr<CheckpointManifest> read = ReadManifest(volume, folder);
  if (absl::IsNotFound(read.status())) {
    why = Why::kIncomplete;
    return base::DataLoss("it has no manifest, so it was never completed");
  }
  why = Why::kUnreadable;
  if (absl::IsDataLoss(read.status())) why = Why::kUnusable;
  MEDLEY_RETURN_IF_ERROR(read.status());
  manifest = *std::move(read);
  why = Why::kForeign;
  if (!wanted.job_uid.empty() && manifest.job_uid != wanted.job_uid) {
    return base::FailedPrecondition("it belongs to the job with uid {}", manifest.job_uid);
  }
  why = Why::kUnusable;
  if (!wanted.model_fingerprint.empty() && !IsOfModel(manifest, wanted.model_fingerprint, wanted.settings)) {
    return base::FailedPrecondition("{}", WhyOtherSettings(manifest.settings, wanted.settings));
  }
  const absl::Status verified = VerifyCheckpoint(volume, manifest);
  if (!absl::IsDataLoss(verified)) why = Why::kUnreadable;
  return verified;
}

}  // namespace

absl::StatusOr<CheckpointManifest> ReadManifest(const Volume& volume, std::string_view folder) {
  MEDLEY_ASSIGN_OR_RETURN(const CheckpointName name, ParseCheckpointFolder(folder));
  const std::filesystem::path path = volume / folder / "manifest.json";
  MEDLEY_ASSIGN_OR_RETURN(const FileStamp stamp, volume.files().Stat(path));
  if (stamp.bytes > kMaxManifest) {
    return base::DataLoss("manifest: the file has {} bytes, a manifest at most {}", stamp.bytes, kMaxManifest);
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, volume.files().ReadWhole(path, kMaxManifest));
  MEDLEY_ASSIGN_OR_RETURN(CheckpointManifest manifest, ParseManifest(text));
  if (manifest.folder != folder || manifest.step != name.step) {
    return base::DataLoss("manifest: folder {} does not match step {}", manifest.folder, manifest.step);
  }
  if (name.generation > 0 && manifest.generation != name.generation) {
    return base::DataLoss("manifest: folder {} does not match generation {}", manifest.folder, manifest.generation);
  }
  return manifest;
}

absl::Status VerifyCheckpoint(const Volume& volume, const CheckpointManifest& manifest, VerifyBytes bytes) {
  for (const CheckpointFileEntry& file : manifest.files) {
    const std::filesystem::path path = volume / manifest.folder / file.name;
    const absl::StatusOr<FileStamp> stamp = volume.files().Stat(path);
    if (absl::IsNotFound(stamp.status())) return base::DataLoss("{}: the file does not exist", file.name);
    MEDLEY_RETURN_IF_ERROR(stamp.status());
    // First the header, because it says where an exchanged file comes from.
    MEDLEY_RETURN_IF_ERROR(DataFile(volume.files(), path).Open(manifest));
    if (stamp->bytes != file.bytes) {
      return base::DataLoss("{}: length is {} bytes, the manifest says {}", file.name, stamp->bytes, file.bytes);
    }
    if (bytes == VerifyBytes::kWhereTheVolumeDoesNot && volume.files().IsObject(path)) continue;
    MEDLEY_ASSIGN_OR_RETURN(const std::string digest, FileDigest(volume.files(), path, file.bytes));
    if (digest != file.digest) {
      return base::DataLoss("{}: its digest is {}, the manifest says {}", file.name, digest, file.digest);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadCheckpoint(const Volume& volume, const CheckpointManifest& manifest, CheckpointHandlers handlers) {
  for (const CheckpointFileEntry& file : manifest.files) {
    const absl::Status status = ReadFileSections(volume, manifest, file.name, handlers);
    if (!status.ok()) return base::Annotate(status, manifest.folder);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CheckpointName>> ListCheckpointFolders(const Volume& volume) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, volume.files().List(volume.root()));
  std::vector<CheckpointName> folders;
  for (const std::string& name : names) {
    if (const absl::StatusOr<CheckpointName> parsed = ParseCheckpointFolder(name); parsed.ok()) {
      folders.push_back(*parsed);
    }
  }
  std::sort(folders.rbegin(), folders.rend());
  return folders;
}

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const Volume& volume, std::string_view job_uid,
                                               std::string_view model_fingerprint,
                                               const std::map<std::string, std::string>& unusable,
                                               const std::string& settings) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<CheckpointName> names, ListCheckpointFolders(volume));
  FoundCheckpoint found;
  for (const CheckpointName& name : names) {
    const std::string folder = CheckpointFolder(name);
    if (const auto known = unusable.find(folder); known != unusable.end()) {
      found.rejected.push_back({folder, RejectedCheckpoint::Why::kUnusable, folder + ": " + known->second});
      continue;
    }
    CheckpointManifest manifest;
    RejectedCheckpoint::Why why{};
    const absl::Status status = Examine(volume, folder, {job_uid, model_fingerprint, settings}, manifest, why);
    if (status.ok()) {
      found.manifest = std::move(manifest);
      return found;
    }
    found.rejected.push_back({folder, why, fmt::format("{}: {}", folder, base::Message(status))});
  }
  return found;
}

}  // namespace medley::worker
