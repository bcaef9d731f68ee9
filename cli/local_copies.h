// Copies of the objects that a command's arguments name, which are files for the rest of the command.
//
// The copies are in the user's cache, where later commands find them; with MEDLEY_CACHE=off in a folder that ends with
// this object. Not thread-safe. Owner: the command, until it has read the files.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/places/places.h"

namespace medley::cli {

class LocalCopies {
 public:
  LocalCopies() = default;
  ~LocalCopies();
  LocalCopies(const LocalCopies&) = delete;
  LocalCopies& operator=(const LocalCopies&) = delete;

  // The path, or pattern, of the copies for "s3://...", "gs://..." or "https://...", also behind "NAME=". What is no
  // such address is returned as it is. Errors: those of worker::Places.
  absl::StatusOr<std::string> Of(const std::string& argument);
  absl::StatusOr<std::vector<std::string>> Of(const std::vector<std::string>& arguments);
  // The folder with the copies of what lies directly in it.
  absl::StatusOr<std::string> OfFolder(const std::string& argument);

 private:
  absl::StatusOr<worker::Places*> Places();

  base::SystemClock clock_;
  std::unique_ptr<worker::Places> places_;
  std::optional<std::filesystem::path> temporary_;
};

}  // namespace medley::cli
