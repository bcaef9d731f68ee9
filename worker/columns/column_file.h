// Tables whose files hold columns, Parquet and Arrow IPC, as the rest of Medley sees them. A library that is loaded
// when such a file is read implements this (worker/arrow), so these types pass from one library to another: they are of
// the standard library only, and no exception leaves a function.
//
// A ColumnFile is owned by who opened it, and not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace medley::worker {

struct ColumnInfo {
  std::string name;
  std::string type;      // for sentences: "int64", "list<item: string>"
  bool readable = true;  // false: it holds no number, text, truth value, date or time
};

enum class ColumnKind { kReal, kWhole, kText };

// The values of a column in one batch. All pointers are valid until the next batch.
struct ColumnValues {
  ColumnKind kind = ColumnKind::kText;
  const double* reals = nullptr;            // kReal; NaN: missing
  const int64_t* wholes = nullptr;          // kWhole; truth values are 0 and 1
  const uint8_t* present = nullptr;         // kWhole: 0 for a missing value; null: none is missing
  const std::string_view* texts = nullptr;  // kText: without codes one a row; empty: missing or empty
  const int32_t* codes = nullptr;           // kText: which of `texts` each row has; -1: missing
  int64_t different = 0;                    // kText with codes: how many texts there are
};

struct ColumnBatch {
  int64_t first_row = 0;              // in the file, from 0
  int group = 0;                      // of Parquet: the row group; of Arrow IPC: the record batch; from 0
  int64_t rows = 0;                   // at most kMostBatchRows; 0 at the end of the file
  std::vector<ColumnValues> columns;  // in the order of Begin
};

inline constexpr int64_t kMostBatchRows = 16384;

class ColumnFile {
 public:
  virtual ~ColumnFile() = default;

  virtual const std::vector<ColumnInfo>& columns() const = 0;
  virtual int64_t rows() const = 0;  // that the file says it has; -1: it does not say
  // How much of the file has been read, about.
  virtual int64_t bytes_read() const = 0;
  // Chooses the columns to read, which are readable, from the first row on. Returns an error, or nothing.
  virtual std::string Begin(const std::vector<int>& columns) = 0;
  // Replaces `batch` by the next rows. Returns an error that names row group and column, or nothing.
  virtual std::string Next(ColumnBatch& batch) = 0;
};

struct ColumnOptions {
  bool parquet = true;     // else Arrow IPC, as a file or as a stream
  int threads = 1;         // that decode
  int64_t most_bytes = 0;  // of memory for what is decoded
};

// The function of the library. `file`: an open descriptor, which it copies. Returns null and sets `error` when the file
// cannot be opened.
inline constexpr const char* kOpenColumnsName = "MedleyOpenColumns";
using OpenColumnsFunction = ColumnFile* (*)(int file, const ColumnOptions& options, std::string& error);

}  // namespace medley::worker
