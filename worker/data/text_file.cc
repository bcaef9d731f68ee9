#include "worker/data/text_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/memory_limit.h"
#include "common/base/status.h"
#include "worker/columns/column_text.h"
#include "worker/data/decompressor.h"
#include "worker/data/text_encoding.h"

namespace medley::worker {
namespace {

constexpr size_t kBlock = size_t{1} << 18;
constexpr size_t kReadAtOnce = size_t{1} << 22;
constexpr size_t kLookedAt = size_t{1} << 16;  // bytes by which the encoding is found

}  // namespace

struct TextFile::State {
  std::string name;
  std::FILE* file = nullptr;
  std::vector<unsigned char> block = std::vector<unsigned char>(kBlock);
  size_t begin = 0;  // of what has not been used of the block
  size_t end = 0;
  bool ended = false;  // all of the file is in the block
  bool began = false;
  int64_t consumed = 0;
  std::unique_ptr<Decompressor> decompressor;  // null: the file is not compressed
  Content content = Content::kText;
  TextForm form;
  ColumnFormat column_format = ColumnFormat::kNone;
  std::unique_ptr<ColumnText> columns;  // null: the file is text
  std::optional<TextDecoder> decoder;
  std::string ahead;  // decoded, but not yet read
  size_t ahead_begin = 0;
  bool raw_ended = false;

  ~State() {
    if (file != nullptr && file != stdin) std::fclose(file);
  }

  absl::Status Fill() {
    if (begin < end || ended) return absl::OkStatus();
    begin = 0;
    end = std::fread(block.data(), 1, block.size(), file);
    consumed += static_cast<int64_t>(end);
    ended = end < block.size();
    if (ended && std::ferror(file) != 0) return base::ErrnoStatus(errno, "reading " + name);
    return absl::OkStatus();
  }

  absl::Status Begin() {
    began = true;
    MEDLEY_RETURN_IF_ERROR(Fill());
    decompressor = MakeDecompressor({reinterpret_cast<const char*>(block.data()), end});
    const char* const promised = CompressionOfName(name);
    if (promised != nullptr && (decompressor == nullptr || std::string_view(decompressor->format()) != promised)) {
      return base::InvalidArgument("{}: the content is not {}, although the name ends in {}", name, promised,
                                   std::filesystem::path(name).extension().string());
    }
    if (content == Content::kBytes) return absl::OkStatus();
    column_format = ColumnFormatOf({reinterpret_cast<const char*>(block.data()), end});
    return column_format == ColumnFormat::kNone ? absl::OkStatus() : BeginColumns();
  }

  absl::Status BeginColumns() {
    const char* const kind = column_format == ColumnFormat::kParquet ? "a Parquet file" : "an Arrow file";
    if (form.delimiter == kLibsvmDelimiter) return base::InvalidArgument("{}: is {}, but libsvm is read", name, kind);
    if (lseek(fileno(file), 0, SEEK_CUR) < 0) {
      return base::InvalidArgument("{}: {} cannot be read from a pipe: give the name of the file", name, kind);
    }
    MEDLEY_ASSIGN_OR_RETURN(std::unique_ptr<ColumnFile> opened, OpenColumns(fileno(file), name, column_format));
    MEDLEY_RETURN_IF_ERROR(CheckColumns(*opened, name));
    columns = std::make_unique<ColumnText>(std::move(opened), name, form.delimiter, form.header);
    return absl::OkStatus();
  }

  absl::Status DecodeColumns() {
    ahead.clear();
    ahead_begin = 0;
    MEDLEY_RETURN_IF_ERROR(columns->Append(ahead));
    raw_ended = ahead.empty();
    consumed = columns->bytes_read();
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Raw(char* to, size_t bytes) {
    return decompressor ? Decompressed(to, bytes) : Plain(to, bytes);
  }

  // Reads the next bytes of the file into `ahead`, which has been read.
  absl::Status Decode() {
    std::string bytes(kLookedAt, '\0');
    MEDLEY_ASSIGN_OR_RETURN(const size_t count, Raw(bytes.data(), bytes.size()));
    bytes.resize(count);
    raw_ended = count < kLookedAt;
    if (!decoder) {
      if (const std::string kind = KindOfBinary(bytes); !kind.empty()) {
        return base::InvalidArgument("{}: is {}, not a table of text in UTF-8: save or convert it as CSV", name, kind);
      }
      decoder.emplace(bytes);
    }
    ahead.clear();
    ahead_begin = 0;
    decoder->Append(bytes, raw_ended, ahead);
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Text(char* to, size_t bytes) {
    size_t read = 0;
    while (read < bytes) {
      if (ahead_begin < ahead.size()) {
        const size_t count = ahead.copy(to + read, bytes - read, ahead_begin);
        ahead_begin += count;
        read += count;
      } else if (raw_ended) {
        break;
      } else if (columns) {
        MEDLEY_RETURN_IF_ERROR(DecodeColumns());
      } else if (decoder && decoder->plain()) {
        MEDLEY_ASSIGN_OR_RETURN(const size_t count, Raw(to + read, bytes - read));
        raw_ended = count < bytes - read;
        read += count;
      } else {
        MEDLEY_RETURN_IF_ERROR(Decode());
      }
    }
    return read;
  }

  absl::StatusOr<size_t> Plain(char* to, size_t bytes) {
    size_t read = 0;
    while (read < bytes) {
      MEDLEY_RETURN_IF_ERROR(Fill());
      const size_t count = std::min(bytes - read, end - begin);
      if (count == 0) break;
      std::memcpy(to + read, block.data() + begin, count);
      begin += count;
      read += count;
    }
    return read;
  }

  absl::StatusOr<size_t> Decompressed(char* to, size_t bytes) {
    size_t read = 0;
    while (read < bytes) {
      MEDLEY_RETURN_IF_ERROR(Fill());
      if (begin == end && decompressor->complete()) break;
      // Without further bytes of the file the decompressor may still have some to write.
      std::string_view in(reinterpret_cast<const char*>(block.data()) + begin, end - begin);
      const absl::StatusOr<size_t> count = decompressor->Decompress(in, to + read, bytes - read);
      if (!count.ok()) return base::Annotate(count.status(), name);
      if (begin == end && *count == 0 && !decompressor->complete()) {
        return base::DataLoss("{}: the {} data end in the middle: the file is truncated", name, decompressor->format());
      }
      begin = end - in.size();
      read += *count;
    }
    return read;
  }
};

absl::StatusOr<TextFile> TextFile::Open(const std::string& path, Content content) {
  auto state = std::make_unique<State>();
  state->name = path;
  state->content = content;
  MEDLEY_ASSIGN_OR_RETURN(const int fd, base::OpenRegularFile(path));
  state->file = fdopen(fd, "rb");
  if (state->file == nullptr) {
    const int error = errno;
    close(fd);
    return base::ErrnoStatus(error, "opening " + path);
  }
  std::setvbuf(state->file, nullptr, _IONBF, 0);
  return TextFile(std::move(state));
}

TextFile TextFile::StandardInput() {
  auto state = std::make_unique<State>();
  state->name = "standard input";
  state->file = stdin;
  return TextFile(std::move(state));
}

TextFile::TextFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
TextFile::TextFile(TextFile&&) noexcept = default;
TextFile& TextFile::operator=(TextFile&&) noexcept = default;
TextFile::~TextFile() = default;

absl::StatusOr<size_t> TextFile::Read(char* to, size_t bytes) {
  if (!state_->began) MEDLEY_RETURN_IF_ERROR(state_->Begin());
  return state_->content == Content::kText ? state_->Text(to, bytes) : state_->Raw(to, bytes);
}

int64_t TextFile::consumed() const { return state_->consumed; }
bool TextFile::compressed() const { return state_->decompressor != nullptr || state_->columns != nullptr; }
ColumnFormat TextFile::columns() const { return state_->columns ? state_->column_format : ColumnFormat::kNone; }
void TextFile::SetForm(const TextForm& form) { state_->form = form; }

absl::StatusOr<std::string> ReadText(const std::string& path, size_t most,
                                     const std::function<void(int64_t bytes)>& on_read) {
  if (most == 0) most = static_cast<size_t>(base::MemoryLimit() / 10 * 9);
  MEDLEY_ASSIGN_OR_RETURN(TextFile file, TextFile::Open(path));
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::string text;
  size_t end = 0;
  int64_t said = 0;
  size_t room = error ? kBlock : static_cast<size_t>(size) + 1;
  while (true) {
    room = std::min(room, most - std::min(most, 2 * end));  // the text is copied when it grows
    if (room == 0) {
      return base::OutOfRange(
          "{}: the text is longer than {} bytes, too long for the memory that this process may use: give the units of "
          "its pool more memory, or train on a part of the data",
          path, end);
    }
    text.resize(end + room);
    while (room > 0) {
      const size_t wanted = std::min(room, kReadAtOnce);
      MEDLEY_ASSIGN_OR_RETURN(const size_t bytes, file.Read(text.data() + end, wanted));
      end += bytes;
      room -= bytes;
      if (on_read) on_read(file.consumed() - std::exchange(said, file.consumed()));
      if (bytes < wanted) break;
    }
    if (room > 0) break;
    room = std::max(end, kBlock);
  }
  text.resize(end);
  return text;
}

absl::Status ForEachRecord(const std::string& path, char delimiter,
                           absl::FunctionRef<bool(std::string_view record, int64_t line)> row) {
  MEDLEY_ASSIGN_OR_RETURN(TextFile file, TextFile::Open(path));
  file.SetForm({.delimiter = delimiter});
  std::string text;
  int64_t line = 1;
  while (true) {
    const size_t kept = text.size();
    if (kept > kLongestLine) return base::InvalidArgument("{}:{}: a row is longer than 64 MiB", path, line);
    text.resize(kept + kBlock);
    MEDLEY_ASSIGN_OR_RETURN(const size_t bytes, file.Read(text.data() + kept, kBlock));
    text.resize(kept + bytes);
    std::string_view rest = text;
    while (const auto record = TakeRecord(rest, delimiter, bytes < kBlock)) {
      if (!row(record->text, line)) return absl::OkStatus();
      line += record->lines;
    }
    if (bytes < kBlock) return absl::OkStatus();
    text.erase(0, text.size() - rest.size());
  }
}

}  // namespace medley::worker
