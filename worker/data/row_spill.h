// Parsed rows that are kept in an unnamed file instead of memory, piece by piece. Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "worker/data/batch.h"
#include "worker/data/block_file.h"
#include "worker/data/row_parser.h"

namespace medley::worker {

class RowSpill {
 public:
  // Errors: those of BlockFile::CreateUnnamed.
  static absl::StatusOr<RowSpill> Create(const std::filesystem::path& folder, const SampleShape& shape);

  // Errors: those of BlockFile::WriteAt.
  absl::Status Append(const ParsedRows& rows);
  // Replaces these parts of `rows` by those of the piece, which was appended as the piece-th one; the other parts are
  // empty. Errors: those of BlockFile::ReadAt.
  absl::Status Read(size_t piece, unsigned parts, ParsedRows& rows) const;
  // Replaces `values` by a column of `numerics` of the piece.
  absl::Status ReadColumn(size_t piece, size_t column, std::vector<double>& values) const;

 private:
  struct Piece {
    int64_t at = 0;  // where it begins in the file: ids, the columns of numerics one after the other, labels, weights
    int samples = 0;
    bool weights = false;
  };

  RowSpill(BlockFile file, const SampleShape& shape) : file_(std::move(file)), shape_(shape) {}
  int64_t NumericsAt(const Piece& piece) const;

  BlockFile file_;
  SampleShape shape_;
  std::vector<Piece> pieces_;
  int64_t end_ = 0;
  std::vector<double> columns_;  // of the piece that is appended
};

}  // namespace medley::worker
