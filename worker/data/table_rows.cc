#include "worker/data/table_rows.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/data/row_split.h"

namespace medley::worker {
namespace {

void Renumber(const std::vector<double>& numbers, std::vector<double>& labels) {
  for (double& label : labels) label = numbers[static_cast<size_t>(label)];
}

}  // namespace

TableRows::TableRows(ParsedTable table, const SampleShape& shape, std::optional<RowSpill> spill,
                     std::function<void()> on_piece)
    : table_(std::move(table)), shape_(shape), spill_(std::move(spill)), on_piece_(std::move(on_piece)) {}

void TableRows::NumberLabels(std::vector<std::vector<double>> numbers) {
  if (spill_) {
    numbers_ = std::move(numbers);
    return;
  }
  for (size_t p = 0; p < numbers.size(); ++p) Renumber(numbers[p], table_.pieces[p].rows.labels);
}

void TableRows::PutAside(const model::ValidationSpec& spec) {
  validation_ = spec;
  aside_ = 0;
  for (int64_t row = 0; row < table_.rows; ++row) aside_ += IsForValidation(spec.fraction, spec.seed, row) ? 1 : 0;
}

std::vector<bool> TableRows::Chosen(RowSet set, int64_t first, int samples) const {
  std::vector<bool> chosen = ChooseRows(*validation_, first, samples);
  if (set == RowSet::kTraining) chosen.flip();
  return chosen;
}

absl::Status TableRows::Read(size_t piece, unsigned parts, ParsedRows& rows) const {
  if (!spill_) {
    rows = table_.pieces[piece].rows;
    return absl::OkStatus();
  }
  MEDLEY_RETURN_IF_ERROR(spill_->Read(piece, parts, rows));
  if (!numbers_.empty()) Renumber(numbers_[piece], rows.labels);
  if (on_piece_) on_piece_();
  return absl::OkStatus();
}

void TableRows::Keep(const std::vector<bool>& chosen, ParsedRows& rows) const {
  const auto keep = [&](auto& values, int width) {
    if (!values.empty()) KeepRows(chosen, static_cast<size_t>(width), values);
  };
  keep(rows.ids, shape_.fields);
  keep(rows.numerics, shape_.numerics);
  keep(rows.labels, shape_.labels);
  keep(rows.weights, 1);
  rows.samples = static_cast<int>(std::ranges::count(chosen, true));
}

absl::Status TableRows::ForEach(RowSet set, unsigned parts, Use use) const {
  ParsedRows rows;
  int64_t first = 0;
  for (size_t p = 0; p < table_.pieces.size(); ++p) {
    const ParsedRows& here = table_.pieces[p].rows;
    if (!spill_ && !validation_) {
      MEDLEY_RETURN_IF_ERROR(use(here));
      continue;
    }
    MEDLEY_RETURN_IF_ERROR(Read(p, parts, rows));
    if (validation_) Keep(Chosen(set, first, here.samples), rows);
    first += here.samples;
    MEDLEY_RETURN_IF_ERROR(use(rows));
  }
  return absl::OkStatus();
}

absl::Status TableRows::Take(RowSet set, bool last, absl::FunctionRef<absl::Status(ParsedRows& rows)> use) {
  ParsedRows rows;
  int64_t first = 0;
  for (size_t p = 0; p < table_.pieces.size(); ++p) {
    ParsedRows& here = table_.pieces[p].rows;
    const int samples = here.samples;
    if (!spill_ && last) {
      rows = std::exchange(here, {});
    } else {
      MEDLEY_RETURN_IF_ERROR(Read(p, kAllParts, rows));
    }
    if (validation_) Keep(Chosen(set, first, samples), rows);
    first += samples;
    MEDLEY_RETURN_IF_ERROR(use(rows));
  }
  return absl::OkStatus();
}

absl::Status TableRows::Column(RowSet set, size_t column, std::vector<double>& values) const {
  values.clear();
  values.reserve(static_cast<size_t>(rows(set)));
  std::vector<double> read;
  const auto width = static_cast<size_t>(shape_.numerics);
  int64_t first = 0;
  for (size_t p = 0; p < table_.pieces.size(); ++p) {
    const ParsedRows& here = table_.pieces[p].rows;
    if (spill_) MEDLEY_RETURN_IF_ERROR(spill_->ReadColumn(p, column, read));
    if (spill_ && on_piece_) on_piece_();
    std::vector<bool> chosen;
    if (validation_) chosen = Chosen(set, first, here.samples);
    for (size_t i = 0; i < static_cast<size_t>(here.samples); ++i) {
      if (validation_ && !chosen[i]) continue;
      values.push_back(spill_ ? read[i] : here.numerics[i * width + column]);
    }
    first += here.samples;
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
