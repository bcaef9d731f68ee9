#include "worker/data/sample_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "common/base/status.h"
#include "worker/data/sample_place.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "MedleySF";
constexpr size_t kHash = 32;
constexpr int64_t kAlignment = 64;
constexpr size_t kVerifiedAtOnce = size_t{1} << 20;
constexpr std::string_view kUnfinished = "unfinished-";

// As it is in the file, which is read on the machine that wrote it.
struct Header {
  char magic[8] = {};
  char key[kHash] = {};
  char samples_hash[kHash] = {};  // of the hashes of all lists
  char hash[kHash] = {};          // of the header, with zeros here, and of the facts
  int64_t facts_bytes = 0;
  int64_t samples[2] = {};
  int32_t fields = 0;
  int32_t numerics = 0;
  int32_t labels = 0;
  int32_t weights = 0;
};

template <size_t N>
void Set(char (&to)[N], std::string_view text) {
  std::copy_n(text.begin(), std::min(N, text.size()), to);
}

std::string HashOf(Header header, std::string_view facts) {
  std::fill_n(header.hash, kHash, '\0');
  base::Hasher hasher;
  hasher.Add({reinterpret_cast<const char*>(&header), sizeof header});
  hasher.Add(facts);
  return hasher.Hex();
}

std::string HashOf(const std::array<std::array<base::Hasher, 4>, 2>& hashes) {
  base::Hasher all;
  for (const auto& set : hashes) {
    for (const base::Hasher& list : set) all.Add(list.Hex());
  }
  return all.Hex();
}

// Hashes a list of the file without mapping its pages.
absl::Status AddList(const BlockFile& file, int64_t begin, int64_t bytes, const std::stop_token& stop,
                     const std::function<void()>& on_piece, base::Hasher& hasher) {
  std::vector<char> buffer(std::min(kVerifiedAtOnce, static_cast<size_t>(bytes)));
  while (bytes > 0) {
    if (stop.stop_requested()) return base::Cancelled("reading {} was stopped", file.path().string());
    const std::span<char> read = std::span(buffer).first(std::min(buffer.size(), static_cast<size_t>(bytes)));
    MEDLEY_RETURN_IF_ERROR(file.ReadAt(begin, read));
    hasher.Add({read.data(), read.size()});
    begin += static_cast<int64_t>(read.size());
    bytes -= static_cast<int64_t>(read.size());
    if (on_piece) on_piece();
  }
  return absl::OkStatus();
}

template <typename T>
std::span<const T> ListAt(const char* mapped, int64_t begin, int64_t bytes) {
  return {reinterpret_cast<const T*>(mapped + begin), static_cast<size_t>(bytes) / sizeof(T)};
}

}  // namespace

SampleLayout LayoutOf(const SampleCounts& counts, int64_t facts_bytes) {
  SampleLayout layout;
  const std::array<int64_t, 4> widths = {counts.shape.fields, counts.shape.numerics, counts.shape.labels,
                                         counts.weights ? 1 : 0};
  layout.end = static_cast<int64_t>(sizeof(Header)) + facts_bytes;
  for (size_t set = 0; set < 2; ++set) {
    for (size_t list = 0; list < 4; ++list) {
      layout.begin[set][list] = (layout.end + kAlignment - 1) / kAlignment * kAlignment;
      layout.bytes[set][list] = counts.samples[set] * widths[list] * int64_t{sizeof(float)};
      layout.end = layout.begin[set][list] + layout.bytes[set][list];
    }
  }
  return layout;
}

absl::StatusOr<std::shared_ptr<const SampleFile>> SampleFile::Open(const fs::path& path, const std::string& key,
                                                                   const std::stop_token& stop,
                                                                   const std::function<void()>& on_piece) {
  MEDLEY_ASSIGN_OR_RETURN(const BlockFile file, BlockFile::Open(path));
  MEDLEY_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  const auto damaged = [&](const char* what) { return base::DataLoss("{}: {}", path.string(), what); };
  Header header;
  MEDLEY_RETURN_IF_ERROR(file.ReadAt(0, {reinterpret_cast<char*>(&header), sizeof header}));
  if (std::string_view(header.magic, sizeof header.magic) != kMagic) return damaged("is no file of samples");
  if (std::string_view(header.key, kHash) != key) return damaged("has other samples");
  if (header.facts_bytes < 0 || header.facts_bytes > size) return damaged("is damaged");
  std::string facts(static_cast<size_t>(header.facts_bytes), '\0');
  MEDLEY_RETURN_IF_ERROR(file.ReadAt(sizeof header, facts));
  if (HashOf(header, facts) != std::string_view(header.hash, kHash)) return damaged("is damaged");
  std::shared_ptr<SampleFile> samples(new SampleFile());
  MEDLEY_ASSIGN_OR_RETURN(samples->facts_, FactsFromBytes(facts));
  samples->counts_ = {.shape = {.fields = header.fields, .numerics = header.numerics, .labels = header.labels},
                      .weights = header.weights != 0,
                      .samples = {header.samples[0], header.samples[1]}};
  samples->layout_ = LayoutOf(samples->counts_, header.facts_bytes);
  if (samples->layout_.end != size) return damaged("does not have the length that it had");
  std::array<std::array<base::Hasher, 4>, 2> hashes;
  for (size_t set = 0; set < 2; ++set) {
    for (size_t list = 0; list < 4; ++list) {
      MEDLEY_RETURN_IF_ERROR(AddList(file, samples->layout_.begin[set][list], samples->layout_.bytes[set][list], stop,
                                     on_piece, hashes[set][list]));
    }
  }
  if (HashOf(hashes) != std::string_view(header.samples_hash, kHash)) return damaged("is damaged");
  MEDLEY_RETURN_IF_ERROR(samples->Map(file));
  return samples;
}

absl::Status SampleFile::Map(const BlockFile& file) {
  void* const mapped = mmap(nullptr, static_cast<size_t>(layout_.end), PROT_READ, MAP_SHARED, file.fd(), 0);
  if (mapped == MAP_FAILED) return base::ErrnoStatus(errno, "mapping " + file.path().string());
  mapped_ = static_cast<const char*>(mapped);
  return absl::OkStatus();
}

SampleFile::~SampleFile() {
  if (mapped_ != nullptr) munmap(const_cast<char*>(mapped_), static_cast<size_t>(layout_.end));
}

BatchView SampleFile::view(RowSet set) const {
  const auto s = static_cast<size_t>(set);
  const auto& begin = layout_.begin[s];
  const auto& bytes = layout_.bytes[s];
  return {static_cast<int>(counts_.samples[s]), ListAt<int32_t>(mapped_, begin[0], bytes[0]),
          ListAt<float>(mapped_, begin[1], bytes[1]), ListAt<float>(mapped_, begin[2], bytes[2]),
          ListAt<float>(mapped_, begin[3], bytes[3])};
}

SampleFileWriter::SampleFileWriter(BlockFile file, bool named, const SampleCounts& counts, SampleFacts facts)
    : file_(std::move(file)),
      named_(named),
      counts_(counts),
      facts_(std::move(facts)),
      facts_bytes_(ToBytes(facts_)),
      layout_(LayoutOf(counts, static_cast<int64_t>(facts_bytes_.size()))) {}

SampleFileWriter::~SampleFileWriter() {
  if (named_) unlink(file_.path().c_str());
}

absl::StatusOr<std::unique_ptr<SampleFileWriter>> SampleFileWriter::Create(const fs::path& folder, bool named,
                                                                           const SampleCounts& counts,
                                                                           SampleFacts facts) {
  MEDLEY_ASSIGN_OR_RETURN(BlockFile file,
                          named ? BlockFile::Create(folder / kUnfinished) : BlockFile::CreateUnnamed(folder));
  return std::unique_ptr<SampleFileWriter>(new SampleFileWriter(std::move(file), named, counts, std::move(facts)));
}

absl::Status SampleFileWriter::Append(RowSet set, const Batch& samples) {
  const auto s = static_cast<size_t>(set);
  const std::array<std::string_view, 4> lists = {BytesOf(std::span(samples.ids)), BytesOf(std::span(samples.numerics)),
                                                 BytesOf(std::span(samples.labels)),
                                                 BytesOf(std::span(samples.weights))};
  for (size_t list = 0; list < 4; ++list) {
    int64_t& written = written_[s][list];
    const auto bytes = static_cast<int64_t>(lists[list].size());
    MEDLEY_CHECK(written + bytes <= layout_.bytes[s][list], "more samples than were counted");
    MEDLEY_RETURN_IF_ERROR(file_.WriteAt(layout_.begin[s][list] + written, lists[list]));
    hashes_[s][list].Add(lists[list]);
    written += bytes;
  }
  return absl::OkStatus();
}

absl::Status SampleFileWriter::Read(RowSet set, size_t list, int64_t at, std::span<char> bytes) const {
  return file_.ReadAt(layout_.begin[static_cast<size_t>(set)][list] + at, bytes);
}

void SampleFileWriter::SetDigest(std::string digest) {
  MEDLEY_CHECK(digest.size() == facts_.digest.size(), "another length moves the samples");
  facts_.digest = std::move(digest);
  facts_bytes_ = ToBytes(facts_);
}

absl::StatusOr<std::shared_ptr<const SampleFile>> SampleFileWriter::Finish(const std::string& key,
                                                                           const fs::path& path) {
  MEDLEY_CHECK(written_ == layout_.bytes, "fewer samples than were counted");
  Header header;
  Set(header.magic, kMagic);
  Set(header.key, key);
  Set(header.samples_hash, HashOf(hashes_));
  header.facts_bytes = static_cast<int64_t>(facts_bytes_.size());
  header.samples[0] = counts_.samples[0];
  header.samples[1] = counts_.samples[1];
  header.fields = counts_.shape.fields;
  header.numerics = counts_.shape.numerics;
  header.labels = counts_.shape.labels;
  header.weights = counts_.weights ? 1 : 0;
  Set(header.hash, HashOf(header, facts_bytes_));
  MEDLEY_RETURN_IF_ERROR(file_.WriteAt(sizeof header, facts_bytes_));
  if (ftruncate(file_.fd(), layout_.end) != 0) return base::ErrnoStatus(errno, "writing " + file_.path().string());
  MEDLEY_RETURN_IF_ERROR(file_.WriteAt(0, {reinterpret_cast<const char*>(&header), sizeof header}));
  std::shared_ptr<SampleFile> samples(new SampleFile());
  samples->facts_ = std::move(facts_);
  samples->counts_ = counts_;
  samples->layout_ = layout_;
  MEDLEY_RETURN_IF_ERROR(samples->Map(file_));
  if (path.empty() || !named_) return samples;  // the destructor removes the name, the mapping remains
  std::error_code error;
  fs::rename(file_.path(), path, error);
  named_ = static_cast<bool>(error);  // without its name this process alone uses the file
  return samples;
}

void RemoveUnfinished(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kUnfinished) && !name.starts_with(kSampleLockPrefix)) continue;
    const int fd = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(entry.path().c_str());  // its writer has ended
    close(fd);
  }
}

}  // namespace medley::worker
