// Plain CSV for records of numbers: no quotes, a header, the same number of columns in every line.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::cli::traces {

inline constexpr int64_t kMostPacked = int64_t{64} << 20;
inline constexpr int64_t kMostUnpacked = int64_t{256} << 20;
inline constexpr size_t kMostColumns = 2000;

// Walks through the lines of a text, which it does not own.
class CsvReader {
 public:
  // Errors: an empty text, not UTF-8, more than kMostColumns columns, a column twice or without a name.
  static absl::StatusOr<CsvReader> Open(std::string_view text, std::string file);

  const std::vector<std::string>& header() const { return header_; }
  // False at the end. Blank lines are left out. Errors: another number of columns.
  absl::StatusOr<bool> Next();
  int line() const { return line_; }  // of the row that Next read
  std::string_view operator[](size_t column) const { return fields_[column]; }
  // "FILE: line N", for errors.
  std::string Place() const;
  // A number from `least` to `most`. Errors name the place, the column and what it has.
  absl::StatusOr<double> Number(size_t column, double least, double most) const;

 private:
  CsvReader(std::string_view text, std::string file) : rest_(text), file_(std::move(file)) {}
  std::string_view rest_;
  std::string file_;
  std::vector<std::string> header_;
  std::vector<std::string_view> fields_;
  int line_ = 0;
};

// The content of FOLDER/NAME or FOLDER/NAME.gz, unpacked. nullopt: neither exists. Errors: not a file, unreadable, too
// large, damaged.
absl::StatusOr<std::optional<std::string>> ReadIfPresent(const std::filesystem::path& folder, const std::string& name);

}  // namespace medley::cli::traces
