// The files of the web page, as the program has them.
#pragma once

#include <absl/status/statusor.h>

#include <deque>
#include <string>
#include <vector>

#include "scheduler-service/serve_rest/static_file.h"

namespace medley::sched {

// Keeps what the files point to. Immutable, thread-safe.
class WebPage {
 public:
  // "/" and its scripts, "/examples/index.json" (names) and "/examples/NAME.json" (requests). An error is a broken
  // build.
  static absl::StatusOr<WebPage> Make();
  const std::vector<StaticFile>& files() const { return files_; }

 private:
  std::deque<std::string> made_;
  std::vector<StaticFile> files_;
};

}  // namespace medley::sched
