#include "worker/data/number.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "common/base/status.h"
#include "common/base/utf8.h"

namespace medley::worker {

absl::Status ReadNumber(std::string_view text, int column, float& number) {
  if (text.empty() || text == "?" || text == "NULL" || text == "NA") {
    number = std::numeric_limits<float>::quiet_NaN();
    return absl::OkStatus();
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    return base::InvalidArgument("column {}: '{}' is not a number", column, base::Printable(text));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
