#include "worker/agent/log_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/utf8.h"

namespace medley::worker {

void LogLines::Add(std::string_view bytes, base::SteadyTime now) {
  while (!bytes.empty()) {
    const size_t end = bytes.find_first_of("\n\r");
    const std::string_view part = bytes.substr(0, end);
    const size_t room = kMostBytes - line_.size();
    line_.append(part.substr(0, room));
    cut_ = cut_ || part.size() > room;
    if (end == std::string_view::npos) return;
    Line(now);
    bytes.remove_prefix(end + 1);
  }
}

void LogLines::End(base::SteadyTime now) {
  if (!line_.empty()) Line(now);
  Tell();
}

void LogLines::Tell() {
  if (hidden_ > 0) show_(fmt::format("({} lines are not shown, because the program prints too many)", hidden_));
  hidden_ = 0;
}

void LogLines::Line(base::SteadyTime now) {
  if (line_.empty()) return;  // as between \r and \n
  const std::string text = base::EscapeInvalidUtf8(line_) + (cut_ ? " (cut)" : "");
  line_.clear();
  cut_ = false;
  see_(text);
  if (now - second_ >= base::seconds(1)) {
    Tell();
    second_ = now;
    lines_ = 0;
    text_ = 0;
  }
  ++lines_;
  text_ += static_cast<int64_t>(text.size());
  if (lines_ > kMostLines || text_ > kMostText) {
    ++hidden_;
    return;
  }
  show_(text);
}

}  // namespace medley::worker
