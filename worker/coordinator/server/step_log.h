// Writes steps.jsonl (a line per committed step) or metrics.jsonl (a line per evaluation), and a line per rollback
// (docs/design/runtime.md). In an object store the lines are in objects of a folder, steps/ or metrics/
// (line_objects.h), which Sync writes. Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "worker/checkpoint/files.h"
#include "worker/coordinator/core/activity.h"
#include "worker/coordinator/core/commands.h"
#include "worker/coordinator/server/line_objects.h"

namespace medley::worker {

class StepLog {
 public:
  // Creates the file or continues an existing one; drops an incomplete last line. `take_over`: continues a copy, which
  // takes the file's name, so that a former coordinator that has the file open writes into a file without a name.
  static absl::StatusOr<std::unique_ptr<StepLog>> Open(const std::filesystem::path& path, bool take_over = false);
  // The same for a volume or an object store. `name`: "steps" or "metrics". `writer`: of LineObjects.
  static absl::StatusOr<std::unique_ptr<StepLog>> Open(const Volume& volume, const std::string& name,
                                                       const std::string& writer, bool take_over);
  ~StepLog();

  // Ignores a step that the file already has; the core may report it again after a restart. Lines that a full volume
  // does not take wait in memory, up to 64 MiB, and are written with a later one.
  absl::Status Add(const StepCommand& step);
  absl::Status Add(const EvaluationCommand& evaluation);
  absl::Status Add(const DrainCommand& drain);
  absl::Status Rollback(const RollbackCommand& rollback);
  // Returns when the lines are on the volume: another machine that opens the file then sees all of them.
  absl::Status Sync();
  int64_t last_step() const { return last_.step; }
  const CommittedStep& last() const { return last_; }  // with its time, if its line says it

 private:
  StepLog(int fd, std::string name, const CommittedStep& last) : fd_(fd), name_(std::move(name)), last_(last) {}
  absl::Status Write(std::string_view line);
  absl::Status WritePending();

  const int fd_;            // negative: `objects_` has the lines
  const std::string name_;  // of the file
  CommittedStep last_;
  std::string pending_;  // not written yet, because the volume is full; begins in the middle of a line perhaps
  std::optional<LineObjects> objects_;
};

}  // namespace medley::worker
