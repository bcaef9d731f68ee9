// Shows frames on a terminal, each one in place of the one before. Not thread-safe.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

namespace medley::cli {

class Screen {
 public:
  // Returns the text to print so that `frame` replaces the one before.
  std::string Replace(const std::vector<std::string>& frame) {
    std::string out;
    if (lines_ > 0) out += fmt::format("\x1b[{}A", lines_);                // cursor up
    for (const std::string& line : frame) out += "\x1b[2K" + line + "\n";  // erase the line
    // Erase lines of a longer previous frame.
    for (size_t i = frame.size(); i < lines_; ++i) out += "\x1b[2K\n";
    lines_ = std::max(lines_, frame.size());
    return out;
  }
  // Keeps the last frame on the terminal: the next one is printed below it.
  void Leave() { lines_ = 0; }

 private:
  size_t lines_ = 0;
};

}  // namespace medley::cli
