#include "worker/data/memory_estimate.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "common/base/file.h"
#include "common/base/memory_limit.h"
#include "common/base/status.h"
#include "common/model/sample_bytes.h"
#include "worker/data/array_dataset.h"
#include "worker/data/block_order.h"
#include "worker/data/schema.h"
#include "worker/data/source.h"
#include "worker/data/text_file.h"

namespace medley::worker {
namespace {

constexpr size_t kWindow = size_t{1} << 20;           // of a text, in which rows are counted
constexpr int64_t kMostInflated = int64_t{32} << 20;  // of a compressed file
constexpr size_t kSampledFiles = 8;

// Counts the lines that are not blank, across calls.
class RowCounter {
 public:
  void Add(std::string_view text) {
    bytes_ += static_cast<int64_t>(text.size());
    for (const char c : text) {
      if (c == '\n') {
        rows_ += content_ ? 1 : 0;
        content_ = false;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        content_ = true;
      }
    }
  }
  // The whole text was added.
  int64_t rows() const { return rows_ + (content_ ? 1 : 0); }
  double bytes_per_row() const {
    return static_cast<double>(bytes_) / static_cast<double>(std::max<int64_t>(1, rows_));
  }

 private:
  int64_t bytes_ = 0;
  int64_t rows_ = 0;
  bool content_ = false;
};

struct TextEstimate {
  int64_t bytes = 0;  // decompressed
  int64_t rows = 0;
};

// Rows of a plain file: their length at the beginning, in the middle and at the end may differ, and the longest counts.
absl::StatusOr<double> LongestMean(const std::string& path, int64_t size, double first) {
  MEDLEY_ASSIGN_OR_RETURN(const int fd, base::OpenRegularFile(path));
  std::string window(kWindow / 4, '\0');
  for (const int64_t at : {size / 4, size / 2, size / 4 * 3, size - static_cast<int64_t>(window.size())}) {
    const ssize_t read = pread(fd, window.data(), window.size(), static_cast<off_t>(std::max<int64_t>(0, at)));
    if (read <= 0) break;
    RowCounter counter;
    counter.Add(std::string_view(window).substr(0, static_cast<size_t>(read)));
    first = std::max(first, counter.bytes_per_row());
  }
  close(fd);
  return first;
}

absl::StatusOr<TextEstimate> EstimateText(const std::string& path) {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  MEDLEY_ASSIGN_OR_RETURN(TextFile file, TextFile::Open(path));
  if (error) return base::ErrnoStatus(error.value(), path);
  std::string window(kWindow, '\0');
  RowCounter counter;
  int64_t inflated = 0;
  while (true) {
    MEDLEY_ASSIGN_OR_RETURN(const size_t read, file.Read(window.data(), window.size()));
    counter.Add(std::string_view(window).substr(0, read));
    inflated += static_cast<int64_t>(read);
    if (read < window.size()) return TextEstimate{inflated, counter.rows()};  // all of it
    const bool plain = !file.compressed();
    if (plain || inflated >= kMostInflated) {
      const double times =
          plain ? 1 : static_cast<double>(inflated) / static_cast<double>(std::max<int64_t>(1, file.consumed()));
      TextEstimate estimate{std::max(inflated, static_cast<int64_t>(static_cast<double>(size) * times)), 0};
      double mean = counter.bytes_per_row();
      if (plain) {
        MEDLEY_ASSIGN_OR_RETURN(mean, LongestMean(path, size, mean));
      }
      estimate.rows = static_cast<int64_t>(static_cast<double>(estimate.bytes) / mean);
      return estimate;
    }
  }
}

// As long as not all rows are read: numbers are standardised in double (ParsedRows).
int64_t ParsedRowBytes(const model::SchemaSpec& schema) {
  const SampleShape shape = ShapeOf(schema);
  return int64_t{4} * shape.fields + int64_t{8} * (shape.numerics + shape.labels + (HasWeights(schema) ? 1 : 0));
}

absl::StatusOr<DataMemory> EstimateTexts(const model::SourceSpec& source, const model::DataSpec& spec,
                                         const std::string& root) {
  MEDLEY_ASSIGN_OR_RETURN(const SourceFile at, FileOf(source, root));
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindFiles(at.path));
  DataMemory memory;
  double sampled = 0, bytes = 0, rows = 0;  // of the files that were looked into
  for (size_t i = 0; i < paths.size(); ++i) {
    TextEstimate text;
    std::error_code error;
    const auto size = static_cast<double>(std::filesystem::file_size(paths[i], error));
    if (error) return base::ErrnoStatus(error.value(), paths[i]);
    if (i < kSampledFiles) {
      MEDLEY_ASSIGN_OR_RETURN(text, EstimateText(paths[i]));
      sampled += size;
      bytes += static_cast<double>(text.bytes);
      rows += static_cast<double>(text.rows);
    } else if (sampled > 0) {
      text = {static_cast<int64_t>(size * bytes / sampled), static_cast<int64_t>(size * rows / sampled)};
    }
    memory.rows += text.rows;
    memory.text = std::max(memory.text, text.bytes);
    memory.peak = std::max(memory.peak, text.bytes + memory.rows * ParsedRowBytes(spec.schema));
  }
  const int64_t other = (spec.schema.header ? static_cast<int64_t>(paths.size()) : 0) + spec.max_bad_rows;
  memory.rows = std::max<int64_t>(0, memory.rows - other);  // rows that are not kept
  memory.kept = memory.rows * model::SampleBytes(spec.schema);
  // The rows are parsed in pieces, which are then joined; the allocator keeps what is freed meanwhile.
  memory.peak = std::max(memory.kept / 10 * 18, memory.peak - other * ParsedRowBytes(spec.schema));
  memory.disk = memory.kept + memory.rows * ParsedRowBytes(spec.schema);
  const bool columns = !spec.schema.numeric.empty() || spec.schema.task == model::Task::kRegression;
  memory.peak_with_file = columns ? memory.rows * int64_t{sizeof(double)} : 0;  // a column, while it is fitted
  return memory;
}

// What the windows in memory take of training data in a file (sample_windows.h).
int64_t WindowBytes(const model::DataSpec& spec, int64_t rows) {
  const BlockOrder blocks = rows > 0 ? BlockOrderOf(spec, rows) : BlockOrder();
  return 2 * std::min(rows, blocks.window * blocks.block) * model::SampleBytes(spec.schema);
}

std::string Gib(int64_t bytes) {
  constexpr double kGib = 1 << 30;
  return bytes < (int64_t{1} << 30) ? fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20))
                                    : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / kGib);
}

}  // namespace

absl::StatusOr<DataMemory> EstimateMemory(const model::SourceSpec& source, const model::DataSpec& spec,
                                          const std::string& root) {
  if (!source.arrays()) return EstimateTexts(source, spec, root);
  DataMemory memory;
  MEDLEY_ASSIGN_OR_RETURN(memory.rows, CountArraySamples(source, spec.schema, root));
  memory.kept = memory.peak = memory.disk = memory.rows * model::SampleBytes(spec.schema);
  return memory;
}

absl::Status CheckFitInMemory(const DataMemory& memory, const std::string& path, const MemoryRoom& room) {
  if (memory.peak <= room.limit - room.used) return absl::OkStatus();
  return base::OutOfRange(
      "the {} rows of {} need at least {} of memory, but a process of this pool may use {}, of which {} are used "
      "already: "
      "give a unit of the pool more memory (spec.unit.resources.memory) or a disk for temporary files (/tmp of its "
      "pods), or train on a part of the data",
      memory.rows, path, Gib(memory.peak), Gib(room.limit), Gib(room.used));
}

MemoryRoom CurrentMemoryRoom() { return {base::MemoryLimit(), base::MemoryInUse()}; }

absl::Status CheckDataFit(const model::DataSpec& spec, const std::string& root, const MemoryRoom& room,
                          const SamplePlace& place) {
  absl::StatusOr<DataMemory> train = EstimateMemory(spec.train, spec, root);
  if (!train.ok()) return absl::OkStatus();
  DataMemory test, validation;
  if (spec.test) test = EstimateMemory(*spec.test, spec, root).value_or(DataMemory());
  if (spec.validation && spec.validation->fraction <= 0) {
    validation = EstimateMemory(spec.validation->source, spec, root).value_or(DataMemory());
  }
  std::string why;  // rows cannot be in a file
  int64_t disk = 0;
  for (DataMemory* part : {&*train, &validation, &test}) {
    if (place.folder.empty() || part->disk == 0 || part->peak <= place.most_in_memory) continue;
    const std::string no_place = WhyNoPlace(place.folder, disk + part->disk);
    if (!no_place.empty()) {
      why = "; they cannot be in a file instead, because " + no_place;
      continue;
    }
    disk += part->kept;
    part->kept = 0;
    part->peak = part->peak_with_file;
    if (part == &*train) part->kept = WindowBytes(spec, part->rows);
  }
  // The training data are kept while the validation data are read, and both while the test data are.
  const int64_t need =
      std::max({train->peak, train->kept + validation.peak, train->kept + validation.kept + test.peak});
  if (need <= room.limit - room.used) return absl::OkStatus();
  const std::string both = spec.test ? fmt::format("training and test data ({} and {} rows", train->rows, test.rows)
                                     : fmt::format("training data ({} rows", train->rows);
  const int64_t text = std::max(train->text, test.text);
  return base::OutOfRange(
      "the {} of {} bytes{}) need at least {} of memory, but a process of this pool may use {}, of which {} are used "
      "already{}: give a unit of the pool more memory (spec.unit.resources.memory), or train on a part of the data",
      both, model::SampleBytes(spec.schema), text > 0 ? fmt::format(", read from {} of text", Gib(text)) : "",
      Gib(need), Gib(room.limit), Gib(room.used), why);
}

}  // namespace medley::worker
