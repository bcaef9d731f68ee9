// The rows of a table as they were parsed, piece by piece, in memory or in a temporary file. Two sets after some are
// put aside for validation; each row is in one of them. Not thread-safe.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "worker/data/row_spill.h"
#include "worker/data/table.h"

namespace medley::worker {

enum class RowSet { kTraining, kAside };

class TableRows {
 public:
  // `spill` has the rows of all pieces of the table, which then have none; without it the table has them. `on_piece` is
  // called whenever a piece, or a column of it, has been read from `spill`.
  TableRows(ParsedTable table, const SampleShape& shape, std::optional<RowSpill> spill = std::nullopt,
            std::function<void()> on_piece = {});

  const ParsedTable& table() const { return table_; }
  int64_t rows(RowSet set = RowSet::kTraining) const { return set == RowSet::kAside ? aside_ : table_.rows - aside_; }
  bool spilled() const { return spill_.has_value(); }

  // Replaces the label l of each row of piece p by numbers[p][l].
  void NumberLabels(std::vector<std::vector<double>> numbers);
  // All rows are for training before.
  void PutAside(const model::ValidationSpec& spec);

  // Calls `use` with the rows of the set in each piece, in their order. The lists that are not among `parts` may be
  // empty. Errors: those of `use` and of RowSpill.
  using Use = absl::FunctionRef<absl::Status(const ParsedRows& rows)>;
  absl::Status ForEach(RowSet set, unsigned parts, Use use) const;
  // The same with all parts, which `use` may change. With `last` the rows of a piece are freed after their use, and the
  // table has none at the end.
  absl::Status Take(RowSet set, bool last, absl::FunctionRef<absl::Status(ParsedRows& rows)> use);
  // Replaces `values` by a column of `numerics`.
  absl::Status Column(RowSet set, size_t column, std::vector<double>& values) const;

 private:
  // Which rows of a piece are in the set; `first`: the number of its first row.
  std::vector<bool> Chosen(RowSet set, int64_t first, int samples) const;
  absl::Status Read(size_t piece, unsigned parts, ParsedRows& rows) const;
  void Keep(const std::vector<bool>& chosen, ParsedRows& rows) const;

  ParsedTable table_;
  const SampleShape shape_;
  std::optional<RowSpill> spill_;
  std::function<void()> on_piece_;
  std::vector<std::vector<double>> numbers_;  // of the labels of each piece; empty: they are what they are
  std::optional<model::ValidationSpec> validation_;
  int64_t aside_ = 0;
};

}  // namespace medley::worker
