// Reads a file, compressed with gzip or zstd or not, in bounded memory. Text is read as UTF-8 without a byte order
// mark: text in UTF-16 is converted, and lines that end in carriage returns alone end in line feeds. Parquet and Arrow
// files are read as the text of a table. Not thread-safe.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "worker/columns/open_columns.h"
#include "worker/data/record.h"

namespace medley::worker {

// How a file of columns becomes text (worker/columns/column_text.h). Files of text are read as they are.
struct TextForm {
  char delimiter = ',';
  bool header = true;
};

class TextFile {
 public:
  enum class Content { kText, kBytes };  // kBytes are read as they are

  // Errors: NotFound, PermissionDenied; InvalidArgument (a pipe, a device, a socket or a folder).
  static absl::StatusOr<TextFile> Open(const std::string& path, Content content = Content::kText);
  static TextFile StandardInput();
  TextFile(TextFile&&) noexcept;
  TextFile& operator=(TextFile&&) noexcept;
  ~TextFile();
  void SetForm(const TextForm& form);  // before something is read

  // Reads until `bytes` bytes are read or the file ends; returns their number. What begins as gzip or zstd is
  // decompressed. Errors: InvalidArgument (the name ends in .gz or .zst, but the content is something else; the content
  // is no text, see KindOfBinary), DataLoss (compressed data that are damaged or end in the middle), those of reading.
  absl::StatusOr<size_t> Read(char* to, size_t bytes);
  // The number of bytes of the file, compressed or not, that have been read so far.
  int64_t consumed() const;
  // These are known when something was read. A file of columns counts as compressed.
  bool compressed() const;
  ColumnFormat columns() const;

 private:
  struct State;
  explicit TextFile(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

inline constexpr size_t kLongestLine = size_t{1} << 26;

// Reads a whole file. `most`: bytes of memory, also while the text grows; 0: nine tenths of what this process may use.
// `on_read` is called with the number of bytes of the file that were read since the last call, some MiB or fewer.
// Errors: those of TextFile; OutOfRange when the text, decompressed, needs more: a retry would not help.
absl::StatusOr<std::string> ReadText(const std::string& path, size_t most = 0,
                                     const std::function<void(int64_t bytes)>& on_read = {});

// Calls `row` for each record of a table and the number of its first line, from 1, until it returns false. Holds only
// some of the file in memory. Errors: those of TextFile; InvalidArgument for a record of more than 64 MiB.
absl::Status ForEachRecord(const std::string& path, char delimiter,
                           absl::FunctionRef<bool(std::string_view record, int64_t line)> row);

}  // namespace medley::worker
