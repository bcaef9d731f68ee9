#include "worker/data/row_spill.h"

#include <utility>

#include "common/base/status.h"

namespace medley::worker {
namespace {

template <typename T>
std::span<char> Writable(std::span<T> values) {
  return {reinterpret_cast<char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

absl::StatusOr<RowSpill> RowSpill::Create(const std::filesystem::path& folder, const SampleShape& shape) {
  MEDLEY_ASSIGN_OR_RETURN(BlockFile file, BlockFile::CreateUnnamed(folder));
  return RowSpill(std::move(file), shape);
}

int64_t RowSpill::NumericsAt(const Piece& piece) const {
  return piece.at + int64_t{sizeof(int32_t)} * piece.samples * shape_.fields;
}

absl::Status RowSpill::Append(const ParsedRows& rows) {
  pieces_.push_back({end_, rows.samples, !rows.weights.empty()});
  const auto samples = static_cast<size_t>(rows.samples);
  const auto width = static_cast<size_t>(shape_.numerics);
  columns_.resize(rows.numerics.size());
  for (size_t c = 0; c < width; ++c) {
    for (size_t i = 0; i < samples; ++i) columns_[c * samples + i] = rows.numerics[i * width + c];
  }
  for (const std::string_view bytes : {BytesOf(std::span(rows.ids)), BytesOf(std::span<const double>(columns_)),
                                       BytesOf(std::span(rows.labels)), BytesOf(std::span(rows.weights))}) {
    MEDLEY_RETURN_IF_ERROR(file_.WriteAt(end_, bytes));
    end_ += static_cast<int64_t>(bytes.size());
  }
  return absl::OkStatus();
}

absl::Status RowSpill::Read(size_t piece, unsigned parts, ParsedRows& rows) const {
  const Piece& at = pieces_[piece];
  const auto samples = static_cast<size_t>(at.samples);
  const auto width = static_cast<size_t>(shape_.numerics);
  const auto sized = [&](unsigned part, int count) {
    return (parts & part) != 0 ? samples * static_cast<size_t>(count) : 0;
  };
  rows.samples = at.samples;
  rows.ids.resize(sized(kIds, shape_.fields));
  rows.numerics.resize(sized(kNumerics, shape_.numerics));
  rows.labels.resize(sized(kLabels, shape_.labels));
  rows.weights.resize(sized(kWeights, at.weights ? 1 : 0));
  int64_t begin = NumericsAt(at);
  MEDLEY_RETURN_IF_ERROR(file_.ReadAt(at.at, Writable(std::span(rows.ids))));
  if (!rows.numerics.empty()) {
    std::vector<double> columns(rows.numerics.size());
    MEDLEY_RETURN_IF_ERROR(file_.ReadAt(begin, Writable(std::span(columns))));
    for (size_t c = 0; c < width; ++c) {
      for (size_t i = 0; i < samples; ++i) rows.numerics[i * width + c] = columns[c * samples + i];
    }
  }
  begin += int64_t{sizeof(double)} * at.samples * shape_.numerics;
  MEDLEY_RETURN_IF_ERROR(file_.ReadAt(begin, Writable(std::span(rows.labels))));
  begin += int64_t{sizeof(double)} * at.samples * shape_.labels;
  return file_.ReadAt(begin, Writable(std::span(rows.weights)));
}

absl::Status RowSpill::ReadColumn(size_t piece, size_t column, std::vector<double>& values) const {
  const Piece& at = pieces_[piece];
  values.resize(static_cast<size_t>(at.samples));
  return file_.ReadAt(NumericsAt(at) + int64_t{sizeof(double)} * at.samples * static_cast<int64_t>(column),
                      Writable(std::span(values)));
}

}  // namespace medley::worker
