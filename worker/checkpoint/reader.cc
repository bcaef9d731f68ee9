#include "worker/checkpoint/reader.h"

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/checkpoint/format.h"

namespace medley::worker {
namespace {

namespace fmtn = checkpoint_format;

constexpr int64_t kMaxManifest = int64_t{64} << 20;

// Reads a file in pieces of exact length. Read returns false when the file is too short.
class Source {
 public:
  explicit Source(const std::filesystem::path& path) : stream_(path, std::ios::binary) {}
  bool open() const { return stream_.is_open(); }
  bool Read(void* out, size_t bytes) {
    stream_.read(static_cast<char*>(out), static_cast<std::streamsize>(bytes));
    return static_cast<size_t>(stream_.gcount()) == bytes;
  }
  bool Skip(uint64_t bytes) {
    stream_.seekg(static_cast<std::streamoff>(bytes), std::ios::cur);
    return stream_.good();
  }
  bool AtEnd() { return stream_.peek() == std::ifstream::traits_type::eof(); }

 private:
  std::ifstream stream_;
};

struct Section {
  fmtn::SectionHeader header;
  std::string name;
};

bool Plausible(const fmtn::SectionHeader& h) {
  if (h.count_a > fmtn::kMaxFloats || h.count_b > fmtn::kMaxFloats || h.name_bytes > fmtn::kMaxName) return false;
  if (h.kind == fmtn::kDense) return h.width == 0;
  return h.kind == fmtn::kRows && h.name_bytes == 0 && h.width > 0 && h.count_b == h.count_a * h.width;
}

// Reads one data file section by section.
class DataFile {
 public:
  explicit DataFile(const std::filesystem::path& path) : source_(path), name_(path.filename().string()) {}

  absl::Status Open() {
    if (!source_.open()) return base::DataLoss("{}: the file cannot be opened", name_);
    char head[16];
    uint32_t version = 0;
    uint32_t crc = 0;
    if (!source_.Read(head, sizeof head)) return base::DataLoss("{}: the file is too short for a header", name_);
    std::memcpy(&version, head + 8, 4);
    std::memcpy(&crc, head + 12, 4);
    if (std::string_view(head, 8) != fmtn::kMagic || crc != fmtn::Crc32(0, head, 12)) {
      return base::DataLoss("{}: the file is not a checkpoint file", name_);
    }
    if (version != fmtn::kVersion) {
      return base::DataLoss("{}: version {} is not supported, this program reads version {}", name_, version,
                            fmtn::kVersion);
    }
    return absl::OkStatus();
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
    return true;
  }

  absl::Status Skip(const Section& section) {
    const uint64_t a = section.header.count_a * (section.header.kind == fmtn::kRows ? 8 : 4);
    return source_.Skip(a + section.header.count_b * 4 + 4) ? absl::OkStatus() : Cut();
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
  absl::Status Cut() const { return base::DataLoss("{}: the file is truncated or damaged", name_); }

  Source source_;
  const std::string name_;
};

absl::Status ReadFileSections(const std::filesystem::path& path, CheckpointHandlers& handlers) {
  DataFile file(path);
  MEDLEY_RETURN_IF_ERROR(file.Open());
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

absl::StatusOr<uint32_t> FileCrc(const std::filesystem::path& path, int64_t bytes) {
  Source source(path);
  if (!source.open()) return base::DataLoss("{}: the file cannot be opened", path.filename().string());
  std::string buffer(size_t{1} << 20, '\0');
  uint32_t crc = 0;
  for (int64_t left = bytes; left > 0;) {
    const size_t n = std::min(buffer.size(), static_cast<size_t>(left));
    if (!source.Read(buffer.data(), n)) return base::DataLoss("{}: the file cannot be read", path.filename().string());
    crc = fmtn::Crc32(crc, buffer.data(), n);
    left -= static_cast<int64_t>(n);
  }
  return crc;
}

}  // namespace

absl::StatusOr<CheckpointManifest> ReadManifest(const std::filesystem::path& root, std::string_view folder) {
  MEDLEY_ASSIGN_OR_RETURN(const int64_t step, StepOfFolder(folder));
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(root / folder / "manifest.json", kMaxManifest));
  MEDLEY_ASSIGN_OR_RETURN(CheckpointManifest manifest, ParseManifest(text));
  if (manifest.folder != folder || manifest.step != step) {
    return base::DataLoss("manifest: folder {} does not match step {}", manifest.folder, manifest.step);
  }
  return manifest;
}

absl::Status VerifyCheckpoint(const std::filesystem::path& root, const CheckpointManifest& manifest) {
  for (const CheckpointFileEntry& file : manifest.files) {
    const std::filesystem::path path = root / manifest.folder / file.name;
    std::error_code error;
    const uintmax_t bytes = std::filesystem::file_size(path, error);
    if (error) return base::DataLoss("{}: {}", file.name, error.message());
    if (bytes != static_cast<uintmax_t>(file.bytes)) {
      return base::DataLoss("{}: length is {} bytes, the manifest says {}", file.name, bytes, file.bytes);
    }
    MEDLEY_ASSIGN_OR_RETURN(const uint32_t crc, FileCrc(path, file.bytes));
    if (crc != file.crc32) {
      return base::DataLoss("{}: crc32 is {:08x}, the manifest says {:08x}", file.name, crc, file.crc32);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadCheckpoint(const std::filesystem::path& root, const CheckpointManifest& manifest,
                            CheckpointHandlers handlers) {
  for (const CheckpointFileEntry& file : manifest.files) {
    const absl::Status status = ReadFileSections(root / manifest.folder / file.name, handlers);
    if (!status.ok()) return base::Annotate(status, manifest.folder);
  }
  return absl::OkStatus();
}

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::filesystem::path& root, std::string_view job_uid,
                                               std::string_view model_fingerprint, int64_t at_most) {
  FoundCheckpoint found;
  std::error_code error;
  std::vector<std::pair<int64_t, std::string>> folders;
  for (std::filesystem::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const absl::StatusOr<int64_t> step = StepOfFolder(name);
    if (step.ok() && *step <= at_most) folders.emplace_back(*step, name);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::ErrnoStatus(error.value(), "listing " + root.string());
  }
  std::sort(folders.rbegin(), folders.rend());
  for (const auto& [step, name] : folders) {
    absl::StatusOr<CheckpointManifest> manifest = ReadManifest(root, name);
    absl::Status status = manifest.status();
    if (absl::IsNotFound(status)) status = base::DataLoss("it has no manifest, so it was never completed");
    if (status.ok() && !job_uid.empty() && manifest->job_uid != job_uid) {
      status = base::FailedPrecondition("it belongs to the job with uid {}", manifest->job_uid);
    }
    if (status.ok() && !model_fingerprint.empty() && manifest->model_fingerprint != model_fingerprint) {
      status = base::FailedPrecondition("its model fingerprint is {}, this job's is {}", manifest->model_fingerprint,
                                        model_fingerprint);
    }
    if (status.ok()) status = VerifyCheckpoint(root, *manifest);
    if (status.ok()) {
      found.manifest = *std::move(manifest);
      return found;
    }
    found.rejected.push_back({name, fmt::format("{}: {}", name, base::Message(status))});
  }
  return found;
}

}  // namespace medley::worker
