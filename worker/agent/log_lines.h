// Cuts what a program prints into lines that are bounded in length and number, whatever it prints. Pure, not
// thread-safe.
//
// A line may have kMostBytes; the rest of a longer one is dropped without being kept. What is no UTF-8 is escaped.
// Beyond kMostLines or kMostText in a second, lines are seen (for the progress) but not shown, and the number of those
// is shown when the second is over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace medley::worker {

class LogLines {
 public:
  static constexpr size_t kMostBytes = 4096;
  static constexpr int kMostLines = 200;         // shown in a second
  static constexpr int64_t kMostText = 1 << 17;  // bytes shown in a second

  // `see` gets every line, `show` those that are within the bounds, and sentences about the others.
  using Take = std::function<void(std::string_view line)>;
  LogLines(Take see, Take show) : see_(std::move(see)), show_(std::move(show)) {}

  void Add(std::string_view bytes, base::SteadyTime now);
  // No more follows: what was begun is a line.
  void End(base::SteadyTime now);

 private:
  void Line(base::SteadyTime now);
  void Tell();

  const Take see_;
  const Take show_;
  std::string line_;
  bool cut_ = false;  // bytes of this line were dropped
  base::SteadyTime second_{};
  int lines_ = 0;
  int64_t text_ = 0;
  int64_t hidden_ = 0;
};

}  // namespace medley::worker
