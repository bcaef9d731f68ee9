#include "worker/columns/column_value.h"

#include <array>
#include <charconv>
#include <cmath>

namespace medley::worker {
namespace {

template <typename Number>
void AppendNumber(Number number, std::string& text) {
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text.append(digits.data(), end);
}

}  // namespace

void AppendValue(const ColumnValues& values, int64_t row, std::string& text) {
  const auto at = static_cast<size_t>(row);
  switch (values.kind) {
    case ColumnKind::kReal:
      if (!std::isnan(values.reals[at])) AppendNumber(values.reals[at], text);
      return;
    case ColumnKind::kWhole:
      if (values.present == nullptr || values.present[at] != 0) AppendNumber(values.wholes[at], text);
      return;
    case ColumnKind::kText:
      break;
  }
  if (values.codes == nullptr) {
    text += values.texts[at];
  } else if (values.codes[at] >= 0) {
    text += values.texts[static_cast<size_t>(values.codes[at])];
  }
}

}  // namespace medley::worker
