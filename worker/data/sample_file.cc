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

#include "common/base/hash.h"
#include "common/base/hasher.h"
#include "common/base/status.h"
#include "worker/data/block_order.h"
#include "worker/data/sample_place.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "MedleyS2";
constexpr size_t kHash = 32;
constexpr int64_t kAlignment = 64;
constexpr int64_t kVerifiedAtOnce = int64_t{1} << 20;
constexpr std::string_view kUnfinished = "unfinished-";

// As it is in the file, which is read on the machine that wrote it.
struct Header {
  char magic[8] = {};
  char key[kHash] = {};
  char samples_hash[kHash] = {};  // of the checksums of all blocks
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

std::string HashOf(const std::vector<uint64_t>& checksums) {
  base::Hasher all;
  all.Add(BytesOf(std::span<const uint64_t>(checksums)));
  return all.Hex();
}

constexpr int64_t kValue = sizeof(float);  // of every list

int64_t Aligned(int64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

int64_t BlockSamplesOf(const SampleCounts& counts) {
  const int64_t values =
      int64_t{counts.shape.fields} + counts.shape.numerics + counts.shape.labels + (counts.weights ? 1 : 0);
  return BlockSamples(std::max<int64_t>(1, values) * kValue);
}

std::span<char> AsBytes(std::vector<uint64_t>& values) {
  return {reinterpret_cast<char*>(values.data()), values.size() * sizeof(uint64_t)};
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
  const int64_t block = BlockSamplesOf(counts);
  for (size_t set = 0; set < 2; ++set) {
    for (size_t list = 0; list < 4; ++list) {
      layout.block_bytes[list] = block * widths[list] * kValue;
      layout.first_checksum[set][list] = layout.checksums;
      if (widths[list] > 0) layout.checksums += (counts.samples[set] + block - 1) / block;
    }
  }
  layout.checksums_at = Aligned(static_cast<int64_t>(sizeof(Header)) + facts_bytes);
  layout.end = layout.checksums_at + layout.checksums * static_cast<int64_t>(sizeof(uint64_t));
  for (size_t set = 0; set < 2; ++set) {
    for (size_t list = 0; list < 4; ++list) {
      layout.begin[set][list] = Aligned(layout.end);
      layout.bytes[set][list] = counts.samples[set] * widths[list] * kValue;
      layout.end = layout.begin[set][list] + layout.bytes[set][list];
    }
  }
  return layout;
}

absl::StatusOr<std::shared_ptr<const SampleFile>> SampleFile::Open(const fs::path& path, const std::string& key,
                                                                   const std::stop_token& stop,
                                                                   const std::function<void()>& on_piece) {
  MEDLEY_ASSIGN_OR_RETURN(BlockFile file, BlockFile::Open(path));
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
  std::shared_ptr<SampleFile> samples(new SampleFile(std::move(file)));
  MEDLEY_ASSIGN_OR_RETURN(samples->facts_, FactsFromBytes(facts));
  samples->counts_ = {.shape = {.fields = header.fields, .numerics = header.numerics, .labels = header.labels},
                      .weights = header.weights != 0,
                      .samples = {header.samples[0], header.samples[1]}};
  samples->block_samples_ = BlockSamplesOf(samples->counts_);
  samples->layout_ = LayoutOf(samples->counts_, header.facts_bytes);
  if (samples->layout_.end != size) return damaged("does not have the length that it had");
  samples->checksums_.resize(static_cast<size_t>(samples->layout_.checksums));
  MEDLEY_RETURN_IF_ERROR(samples->file_.ReadAt(samples->layout_.checksums_at, AsBytes(samples->checksums_)));
  if (HashOf(samples->checksums_) != std::string_view(header.samples_hash, kHash)) return damaged("is damaged");
  MEDLEY_RETURN_IF_ERROR(samples->Verify(stop, on_piece));
  MEDLEY_RETURN_IF_ERROR(samples->Map());
  return samples;
}

// Reads many blocks of a list at a time.
absl::Status SampleFile::Verify(const std::stop_token& stop, const std::function<void()>& on_piece) const {
  std::vector<char> buffer;
  for (size_t set = 0; set < 2; ++set) {
    for (size_t list = 0; list < 4; ++list) {
      const int64_t block = layout_.block_bytes[list];
      if (block == 0) continue;
      const int64_t piece = std::max<int64_t>(1, kVerifiedAtOnce / block) * block, end = layout_.bytes[set][list];
      for (int64_t at = 0; at < end; at += piece) {
        if (stop.stop_requested()) return base::Cancelled("reading {} was stopped", file_.path().string());
        buffer.resize(static_cast<size_t>(std::min(piece, end - at)));
        MEDLEY_RETURN_IF_ERROR(file_.ReadAt(layout_.begin[set][list] + at, buffer));
        std::string_view rest(buffer.data(), buffer.size());
        for (auto sum = layout_.first_checksum[set][list] + at / block; !rest.empty(); ++sum) {
          const std::string_view one = rest.substr(0, static_cast<size_t>(block));
          if (base::Hash64(one) != checksums_[static_cast<size_t>(sum)]) {
            return base::DataLoss("{}: is damaged", file_.path().string());
          }
          rest.remove_prefix(one.size());
        }
        if (on_piece) on_piece();
      }
    }
  }
  return absl::OkStatus();
}

absl::Status SampleFile::ReadBlock(RowSet set, size_t list, int64_t block, std::span<char> values) const {
  const auto s = static_cast<size_t>(set);
  const int64_t at = block * layout_.block_bytes[list];
  MEDLEY_CHECK(block >= 0 && at + static_cast<int64_t>(values.size()) <= layout_.bytes[s][list],
               "the file has no such block");
  if (values.empty()) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(file_.ReadAt(layout_.begin[s][list] + at, values));
  const auto sum = static_cast<size_t>(layout_.first_checksum[s][list] + block);
  if (base::Hash64({values.data(), values.size()}) == checksums_[sum]) return absl::OkStatus();
  return base::DataLoss("{}: block {} of the samples has been damaged since the file was opened", file_.path().string(),
                        block);
}

absl::Status SampleFile::Map() {
  void* const mapped = mmap(nullptr, static_cast<size_t>(layout_.end), PROT_READ, MAP_SHARED, file_.fd(), 0);
  if (mapped == MAP_FAILED) return base::ErrnoStatus(errno, "mapping " + file_.path().string());
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
      layout_(LayoutOf(counts, static_cast<int64_t>(facts_bytes_.size()))),
      checksums_(static_cast<size_t>(layout_.checksums)) {}

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
    AddToChecksums(s, list, lists[list]);
    written += bytes;
  }
  return absl::OkStatus();
}

// `bytes` follow those that were written to the list.
void SampleFileWriter::AddToChecksums(size_t set, size_t list, std::string_view bytes) {
  const auto block = static_cast<size_t>(layout_.block_bytes[list]);
  const auto end = static_cast<size_t>(layout_.bytes[set][list]);
  std::string& begun = begun_[set][list];
  auto at = static_cast<size_t>(written_[set][list]);
  while (!bytes.empty()) {
    const size_t first = at / block * block, whole = std::min(block, end - first);
    const std::string_view part = bytes.substr(0, first + whole - at);
    at += part.size();
    bytes.remove_prefix(part.size());
    if (part.size() < whole) begun += part;
    if (at < first + whole) return;
    const auto sum = static_cast<size_t>(layout_.first_checksum[set][list]) + first / block;
    checksums_[sum] = base::Hash64(begun.empty() ? part : std::string_view(begun));
    begun.clear();
  }
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
  Set(header.samples_hash, HashOf(checksums_));
  header.facts_bytes = static_cast<int64_t>(facts_bytes_.size());
  header.samples[0] = counts_.samples[0];
  header.samples[1] = counts_.samples[1];
  header.fields = counts_.shape.fields;
  header.numerics = counts_.shape.numerics;
  header.labels = counts_.shape.labels;
  header.weights = counts_.weights ? 1 : 0;
  Set(header.hash, HashOf(header, facts_bytes_));
  MEDLEY_RETURN_IF_ERROR(file_.WriteAt(sizeof header, facts_bytes_));
  MEDLEY_RETURN_IF_ERROR(file_.WriteAt(layout_.checksums_at, BytesOf(std::span<const uint64_t>(checksums_))));
  if (ftruncate(file_.fd(), layout_.end) != 0) return base::ErrnoStatus(errno, "writing " + file_.path().string());
  MEDLEY_RETURN_IF_ERROR(file_.WriteAt(0, {reinterpret_cast<const char*>(&header), sizeof header}));
  const bool keeps_name = !path.empty() && named_;
  MEDLEY_ASSIGN_OR_RETURN(BlockFile again, file_.Duplicate(keeps_name ? path : file_.path()));
  std::shared_ptr<SampleFile> samples(new SampleFile(std::move(again)));
  samples->facts_ = std::move(facts_);
  samples->counts_ = counts_;
  samples->layout_ = layout_;
  samples->block_samples_ = BlockSamplesOf(counts_);
  samples->checksums_ = std::move(checksums_);
  MEDLEY_RETURN_IF_ERROR(samples->Map());
  if (!keeps_name) return samples;  // the destructor removes the name, the mapping remains
  std::error_code error;
  fs::rename(file_.path(), path, error);
  named_ = static_cast<bool>(error);  // without its name this process alone uses the file
  return samples;
}

void RemoveUnfinished(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::directory_entry& entry = *at;
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kUnfinished) && !name.starts_with(kSampleLockPrefix)) continue;
    const int fd = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(entry.path().c_str());  // its writer has ended
    close(fd);
  }
}

}  // namespace medley::worker
