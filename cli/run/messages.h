// The messages of a run in the order in which they came, each sentence once. A warning is held back for a moment: the
// failure of the job, which usually follows it at once, says the same. Pure; not thread-safe.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "cli/once.h"

namespace medley::cli {

class Messages {
 public:
  static constexpr double kHold = 1;  // seconds

  // `seconds`: since the start of the run; not smaller than before.
  void Add(double seconds, std::string line);
  // Only those sentences that were not shown before; empty if there are none.
  void Warn(double seconds, std::string message);
  void AddRaw(std::string line);  // without the time
  // The end of the run will say this: no message repeats it.
  void SaidElsewhere(const std::string& message) { once_.Said(message); }

  // The messages to show at that time. `over`: nothing is held back any more.
  std::vector<std::string> Take(double seconds, bool over);

 private:
  struct Message {
    double seconds = 0;
    bool raw = false;
    bool warning = false;
    std::string text;
  };
  std::deque<Message> waiting_;
  Once once_;
};

}  // namespace medley::cli
