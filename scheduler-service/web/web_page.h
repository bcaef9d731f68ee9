// The files of the web page, embedded in the program.
#pragma once

#include <absl/status/statusor.h>

#include <deque>
#include <string>
#include <vector>

#include "scheduler-service/serve_rest/static_file.h"

namespace medley::sched {

// Owns the bytes of the generated files. Immutable, thread-safe.
class WebPage {
 public:
  // "/" and its scripts, "/examples/index.json" (names) and "/examples/NAME.json" (requests). An error means that the
  // build is broken.
  static absl::StatusOr<WebPage> Make();
  const std::vector<StaticFile>& files() const { return files_; }

 private:
  std::deque<std::string> made_;
  std::vector<StaticFile> files_;
};

}  // namespace medley::sched
