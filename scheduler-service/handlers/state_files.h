// Files that keep the learned state of the service across restarts. All are in one folder, written atomically and
// protected by a checksum.
//
// Thread-safe. Without a folder nothing is saved.
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
  // An empty `folder` means that nothing is saved. Borrows the metrics.
  StateFiles(std::filesystem::path folder, metrics::Registry& metrics);
  // Creates the folder. Errors: it cannot be created or written to.
  absl::Status Open() const;

  // Returns the content of a file; nullopt if it does not exist or is damaged. A damaged file is logged and counted
  // (medley_state_damaged_total).
  std::optional<std::string> Load(const std::string& name) const;
  // A failure is logged and counted (medley_state_write_errors_total), and the service continues.
  void Save(const std::string& name, std::string_view bytes) const;
  // Logs and counts a file whose content a reader could not use.
  void Damaged(const std::string& name, const absl::Status& why) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  const std::filesystem::path folder_;
  metrics::Registry& metrics_;
};

}  // namespace medley::sched
