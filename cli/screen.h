// Frames written over one another on a terminal. Not thread-safe.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

namespace medley::cli {

class Screen {
 public:
  // What to print so that `frame` replaces the one before.
  std::string Replace(const std::vector<std::string>& frame) {
    std::string out;
    if (lines_ > 0) out += fmt::format("\x1b[{}A", lines_);                // cursor up
    for (const std::string& line : frame) out += "\x1b[2K" + line + "\n";  // erase the line
    // What the last frame had below this one's end.
    for (size_t i = frame.size(); i < lines_; ++i) out += "\x1b[2K\n";
    lines_ = std::max(lines_, frame.size());
    return out;
  }
  // What to print to leave the last frame standing.
  void Leave() { lines_ = 0; }

 private:
  size_t lines_ = 0;
};

}  // namespace medley::cli
