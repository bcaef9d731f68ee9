#include "worker/data/array_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "common/model/data_format.h"
#include "worker/data/source.h"
#include "worker/data/text_file.h"

namespace medley::worker {
namespace {

constexpr int64_t kArrayPieceNumbers = int64_t{1} << 18;

int64_t Product(std::span<const int64_t> sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

std::vector<int64_t> WithoutOnes(std::span<const int64_t> sizes) {
  std::vector<int64_t> kept;
  std::ranges::copy_if(sizes, std::back_inserter(kept), [](int64_t size) { return size != 1; });
  return kept;
}

// Whether rows of the array can be samples of the shape: axes of one do not matter, and a flat row may be any shape.
absl::Status CheckShape(const ArrayHeader& header, const std::vector<int64_t>& shape) {
  const std::span<const int64_t> row = std::span(header.sizes).subspan(1);
  const std::vector<int64_t> has = WithoutOnes(row), wanted = WithoutOnes(shape);
  if (has == wanted || (has.size() == 1 && has[0] == Product(wanted))) return absl::OkStatus();
  return base::InvalidArgument("its samples have the shape [{}], but [{}] is expected", fmt::join(row, ", "),
                               fmt::join(shape, ", "));
}

absl::StatusOr<ArrayHeader> ParseHeader(const std::string& format, std::string_view bytes) {
  const model::DataFormat* const known = model::DataFormatNamed(format);
  switch (known == nullptr ? model::FormatKind::kRows : known->kind) {
    case model::FormatKind::kIdx:
      return ParseIdx(bytes);
    case model::FormatKind::kNpy:
      return ParseNpy(bytes);
    case model::FormatKind::kRaw:
    case model::FormatKind::kRows:
    case model::FormatKind::kPairs:
    case model::FormatKind::kColumns:
      break;
  }
  return base::InvalidArgument("files of the format '{}' have no header of an array", format);
}

// One open file, after its header.
class Reader {
 public:
  static absl::StatusOr<Reader> Open(const std::string& path, const ArraySource& source) {
    MEDLEY_ASSIGN_OR_RETURN(TextFile file, TextFile::Open(path, TextFile::Content::kBytes));
    Reader reader(std::move(file));
    if (model::HasNoHeader(source.format)) {
      reader.header_.type = source.storage;
      return reader;
    }
    reader.head_.resize(kMostHeaderBytes);
    MEDLEY_ASSIGN_OR_RETURN(const size_t read, reader.file_.Read(reader.head_.data(), reader.head_.size()));
    reader.head_.resize(read);
    MEDLEY_ASSIGN_OR_RETURN(reader.header_, ParseHeader(source.format, reader.head_));
    reader.head_.erase(0, reader.header_.bytes);
    return reader;
  }

  const ArrayHeader& header() const { return header_; }
  int64_t consumed() const { return file_.consumed(); }
  // Reads what follows the header of a raw file, which has none.
  absl::StatusOr<bool> Compressed() {
    if (head_.empty()) {
      head_.resize(1);
      MEDLEY_ASSIGN_OR_RETURN(const size_t read, file_.Read(head_.data(), 1));
      head_.resize(read);
    }
    return file_.compressed();
  }

  absl::StatusOr<size_t> Read(char* to, size_t bytes) {
    const size_t kept = std::min(bytes, head_.size());
    std::copy_n(head_.data(), kept, to);
    head_.erase(0, kept);
    MEDLEY_ASSIGN_OR_RETURN(const size_t read, file_.Read(to + kept, bytes - kept));
    return kept + read;
  }

 private:
  explicit Reader(TextFile file) : file_(std::move(file)) {}

  TextFile file_;
  ArrayHeader header_;
  std::string head_;  // read, but not yet used
};

// Errors of TextFile name the file already.
absl::Status Named(const absl::Status& status, const std::string& path) {
  return base::Message(status).starts_with(path) ? status : base::Annotate(status, path);
}

}  // namespace

struct ArrayReader::State {
  ArraySource source;
  std::vector<std::string> paths;
  size_t next = 0;               // path
  std::optional<Reader> reader;  // of the path before `next`
  int64_t samples = 0;           // read from it
  int64_t earlier = 0;           // bytes of the files before it
  std::string bytes;             // as they are stored

  absl::Status Enter() {
    MEDLEY_ASSIGN_OR_RETURN(Reader opened, Reader::Open(paths[next], source));
    if (!model::HasNoHeader(source.format)) MEDLEY_RETURN_IF_ERROR(CheckShape(opened.header(), source.shape));
    reader.emplace(std::move(opened));
    samples = 0;
    ++next;
    return absl::OkStatus();
  }

  // Appends at most `most` samples of the open file, which is closed at its end.
  absl::StatusOr<int64_t> ReadFile(int64_t most, std::vector<double>& numbers) {
    const ArrayHeader& header = reader->header();
    const bool raw = model::HasNoHeader(source.format);
    const auto width = static_cast<size_t>(Product(source.shape));
    const size_t sample = width * SizeOf(header.type);
    bytes.resize(static_cast<size_t>(most) * sample);
    MEDLEY_ASSIGN_OR_RETURN(const size_t read, reader->Read(bytes.data(), bytes.size()));
    const auto whole = static_cast<int64_t>(read / sample);
    samples += whole;
    if (read % sample != 0) {
      return base::InvalidArgument("after {} samples of {} bytes, {} bytes are left over", samples, sample,
                                   read % sample);
    }
    if (!raw && samples > header.sizes[0]) {
      return base::InvalidArgument("it has more than the {} samples of its header", header.sizes[0]);
    }
    const size_t count = read / sample * width;
    const size_t before = numbers.size();
    numbers.resize(before + count);
    for (size_t i = 0; i < count; ++i) {
      numbers[before + i] = ElementAt(bytes.data(), i, header.type, header.big_endian);
    }
    if (read == bytes.size()) return whole;
    if (!raw && samples != header.sizes[0]) {
      return base::InvalidArgument("it ends after {} of the {} samples of its header", samples, header.sizes[0]);
    }
    earlier += reader->consumed();
    reader.reset();
    return whole;
  }
};

ArrayReader::ArrayReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ArrayReader::ArrayReader(ArrayReader&& other) noexcept = default;
ArrayReader& ArrayReader::operator=(ArrayReader&& other) noexcept = default;
ArrayReader::~ArrayReader() = default;

absl::StatusOr<ArrayReader> ArrayReader::Open(ArraySource source) {
  auto state = std::make_unique<State>();
  MEDLEY_ASSIGN_OR_RETURN(state->paths, FindFiles(source.path));
  state->source = std::move(source);
  return ArrayReader(std::move(state));
}

absl::StatusOr<int64_t> ArrayReader::Read(int64_t most, std::vector<double>& numbers) {
  numbers.clear();
  int64_t samples = 0;
  while (samples < most) {
    if (!state_->reader) {
      if (state_->next == state_->paths.size()) break;
      const absl::Status entered = state_->Enter();
      if (!entered.ok()) return Named(entered, state_->paths[state_->next]);
    }
    const absl::StatusOr<int64_t> read = state_->ReadFile(most - samples, numbers);
    if (!read.ok()) return Named(read.status(), state_->paths[state_->next - 1]);
    samples += *read;
  }
  return samples;
}

int64_t ArrayReader::bytes() const {
  int64_t bytes = 0;
  for (const std::string& path : state_->paths) {
    std::error_code absent;
    const auto size = std::filesystem::file_size(path, absent);
    if (!absent) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

int64_t ArrayReader::consumed() const { return state_->earlier + (state_->reader ? state_->reader->consumed() : 0); }

absl::StatusOr<int64_t> ReadArray(const ArraySource& source,
                                  absl::FunctionRef<absl::Status(std::span<const double>)> values) {
  MEDLEY_ASSIGN_OR_RETURN(ArrayReader reader, ArrayReader::Open(source));
  const int64_t piece = std::max<int64_t>(1, kArrayPieceNumbers / Product(source.shape));
  std::vector<double> numbers;
  for (int64_t samples = 0;;) {
    MEDLEY_ASSIGN_OR_RETURN(const int64_t read, reader.Read(piece, numbers));
    samples += read;
    if (read > 0) MEDLEY_RETURN_IF_ERROR(values(numbers));
    if (read < piece) return samples;
  }
}

absl::StatusOr<int64_t> CountSamples(const ArraySource& source) {
  constexpr int64_t kMostInflation = 1032;  // of deflate
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindFiles(source.path));
  int64_t samples = 0;
  for (const std::string& path : paths) {
    absl::StatusOr<Reader> reader = Reader::Open(path, source);
    if (!reader.ok()) return Named(reader.status(), path);
    std::error_code error;
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
    if (error) return base::ErrnoStatus(error.value(), path);
    const int64_t sample = Product(source.shape) * static_cast<int64_t>(SizeOf(reader->header().type));
    const bool raw = model::HasNoHeader(source.format);
    MEDLEY_ASSIGN_OR_RETURN(const bool packed, reader->Compressed());
    const int64_t most = bytes / sample * (packed && !raw ? kMostInflation : 1);
    samples += raw ? most : std::min(most, reader->header().sizes[0]);
  }
  return samples;
}

absl::Status CheckArray(const ArraySource& source) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindFiles(source.path));
  const absl::StatusOr<Reader> reader = Reader::Open(paths.front(), source);
  if (!reader.ok()) return Named(reader.status(), paths.front());
  if (model::HasNoHeader(source.format)) return absl::OkStatus();
  return Named(CheckShape(reader->header(), source.shape), paths.front());
}

}  // namespace medley::worker
