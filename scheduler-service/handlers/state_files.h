// What the service has learned, kept over restarts: files in one folder, each written whole or not at all and checked
// when read.
//
// Thread-safe. Without a folder nothing is kept.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "common/metrics/metrics.h"

namespace medley::sched {

class StateFiles {
 public:
  // `folder` may be empty: nothing is kept. Borrows the metrics.
  StateFiles(std::filesystem::path folder, metrics::Registry& metrics);
  // Makes the folder. Errors: that it cannot be made or written to.
  absl::Status Open() const;

  // Nothing when there is no such file, or when it is damaged; the latter is logged and counted
  // (medley_state_damaged_total).
  std::optional<std::string> Load(const std::string& name) const;
  // A failure is logged and counted (medley_state_write_errors_total): the service goes on without.
  void Save(const std::string& name, std::string_view bytes) const;
  // What a reader found wrong with bytes that were read whole.
  void Damaged(const std::string& name, const absl::Status& why) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  const std::filesystem::path folder_;
  metrics::Registry& metrics_;
};

}  // namespace medley::sched
