#include "worker/data/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/hasher.h"
#include "common/base/status.h"
#include "worker/data/block_file.h"
#include "worker/data/row_split.h"

namespace medley::worker {
namespace {

template <typename T>
std::string_view BytesIn(const std::vector<T>& values) {
  return BytesOf(std::span<const T>(values));
}

void AddShape(int64_t samples, const SampleShape& shape, const std::vector<std::string>& classes,
              base::Hasher& hasher) {
  hasher.Add(fmt::format("{}/{}/{}/{}/", samples, shape.fields, shape.numerics, shape.labels));
  for (const std::string& name : classes) hasher.Add(fmt::format("{}:{}/", name.size(), name));
}

// Reads one list of a set from its beginning.
class ListReader {
 public:
  ListReader(const SampleFileWriter& file, RowSet set, size_t list, int64_t bytes,
             const std::function<void()>& on_piece)
      : file_(file), set_(set), list_(list), bytes_(bytes), on_piece_(on_piece) {}

  // The next bytes, at most `most` of them; none at the end.
  absl::StatusOr<std::string_view> Next(size_t most) {
    if (rest_.empty()) {
      buffer_.resize(static_cast<size_t>(std::min<int64_t>(kReadAtOnce, bytes_ - at_)));
      MEDLEY_RETURN_IF_ERROR(file_.Read(set_, list_, at_, buffer_));
      at_ += static_cast<int64_t>(buffer_.size());
      rest_ = buffer_;
      if (on_piece_) on_piece_();
    }
    const std::string_view next = rest_.substr(0, most);
    rest_.remove_prefix(next.size());
    return next;
  }

 private:
  static constexpr int64_t kReadAtOnce = int64_t{1} << 20;

  const SampleFileWriter& file_;
  const RowSet set_;
  const size_t list_;
  const int64_t bytes_;  // of the list
  const std::function<void()>& on_piece_;
  int64_t at_ = 0;
  std::string buffer_;
  std::string_view rest_;  // of the buffer
};

absl::Status AddBytes(ListReader& reader, int64_t bytes, base::Hasher& hasher) {
  while (bytes > 0) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string_view next, reader.Next(static_cast<size_t>(bytes)));
    hasher.Add(next);
    bytes -= static_cast<int64_t>(next.size());
  }
  return absl::OkStatus();
}

}  // namespace

std::string DigestOf(const Batch& rows, const std::vector<std::string>& classes) {
  base::Hasher hasher;
  AddShape(rows.samples, rows.shape, classes, hasher);
  hasher.Add(BytesIn(rows.ids));
  hasher.Add(BytesIn(rows.numerics));
  hasher.Add(BytesIn(rows.labels));
  hasher.Add(BytesIn(rows.weights));
  return hasher.Hex();
}

absl::StatusOr<std::string> DigestOf(const SampleFileWriter& file, const model::ValidationSpec* aside,
                                     const std::vector<std::string>& classes, const std::function<void()>& on_piece) {
  const SampleCounts& counts = file.counts();
  const SampleShape& shape = counts.shape;
  const int64_t samples = counts.samples[0] + counts.samples[1];
  base::Hasher hasher;
  AddShape(samples, shape, classes, hasher);
  const std::array<int, 4> widths = {shape.fields, shape.numerics, shape.labels, counts.weights ? 1 : 0};
  for (size_t list = 0; list < widths.size(); ++list) {
    const int64_t width = int64_t{widths[list]} * int64_t{sizeof(float)};
    ListReader training(file, RowSet::kTraining, list, counts.samples[0] * width, on_piece);
    ListReader put_aside(file, RowSet::kAside, list, counts.samples[1] * width, on_piece);
    if (aside == nullptr) {
      MEDLEY_RETURN_IF_ERROR(AddBytes(training, samples * width, hasher));
      continue;
    }
    for (int64_t row = 0; row < samples; ++row) {
      const bool chosen = IsForValidation(aside->fraction, aside->seed, row);
      MEDLEY_RETURN_IF_ERROR(AddBytes(chosen ? put_aside : training, width, hasher));
    }
  }
  return hasher.Hex();
}

absl::StatusOr<std::string> DigestOf(const TableRows& rows, RowSet set, const SampleShape& shape,
                                     const Transform& transform) {
  base::Hasher hasher;
  AddShape(rows.rows(set), shape, transform.label.classes, hasher);
  const auto add = [&](unsigned parts, auto list) {
    return rows.ForEach(set, parts, [&](const ParsedRows& piece) {
      hasher.Add(BytesIn(piece.*list));
      return absl::OkStatus();
    });
  };
  const auto add_rounded = [&](unsigned parts, auto list) {
    return rows.ForEach(set, parts, [&](const ParsedRows& piece) {
      const std::vector<float> rounded((piece.*list).begin(), (piece.*list).end());
      hasher.Add(BytesIn(rounded));
      return absl::OkStatus();
    });
  };
  MEDLEY_RETURN_IF_ERROR(add(kIds, &ParsedRows::ids));
  MEDLEY_RETURN_IF_ERROR(add_rounded(kNumerics, &ParsedRows::numerics));
  MEDLEY_RETURN_IF_ERROR(add_rounded(kLabels, &ParsedRows::labels));
  MEDLEY_RETURN_IF_ERROR(add(kWeights, &ParsedRows::weights));
  std::vector<double> values;
  for (size_t c = 0; c < transform.columns.size(); ++c) {
    const NumericTransform& column = transform.columns[c];
    if (column.inverse_deviation == 0 || !NeedsDouble(column.mean, 1 / column.inverse_deviation)) continue;
    MEDLEY_RETURN_IF_ERROR(rows.Column(set, c, values));
    hasher.Add(BytesIn(values));
  }
  if (transform.label.log || NeedsDouble(transform.label.mean, transform.label.deviation)) {
    MEDLEY_RETURN_IF_ERROR(add(kLabels, &ParsedRows::labels));
  }
  return hasher.Hex();
}

}  // namespace medley::worker
