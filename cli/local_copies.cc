#include "cli/local_copies.h"

#include <cstdlib>
#include <system_error>
#include <utility>

#include "cli/run/profile_cache.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/object_store/location.h"

namespace medley::cli {
namespace {

using object_store::IsRemote;

const char* Variable(const char* name) { return std::getenv(name); }

std::optional<std::string> OptionalVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

LocalCopies::~LocalCopies() {
  places_.reset();
  std::error_code ignored;
  if (temporary_) std::filesystem::remove_all(*temporary_, ignored);
}

absl::StatusOr<worker::Places*> LocalCopies::Places() {
  if (places_ != nullptr) return places_.get();
  std::optional<std::filesystem::path> folder = CacheFolder(&Variable);
  if (!folder) {
    MEDLEY_ASSIGN_OR_RETURN(temporary_, base::MakeTempDir("medley-objects"));
    folder = temporary_;
  }
  MEDLEY_ASSIGN_OR_RETURN(places_, worker::Places::Make(OptionalVariable, {.cache = *folder / "objects"}, clock_));
  return places_.get();
}

absl::StatusOr<std::string> LocalCopies::Of(const std::string& argument) {
  const size_t equals = argument.find('=');
  const bool named = equals != std::string::npos && IsRemote(argument.substr(equals + 1));
  if (!IsRemote(argument) && !named) return argument;
  MEDLEY_ASSIGN_OR_RETURN(worker::Places* const places, Places());
  if (IsRemote(argument)) return places->Copy(argument, {});
  MEDLEY_ASSIGN_OR_RETURN(const std::string path, places->Copy(argument.substr(equals + 1), {}));
  return argument.substr(0, equals + 1) + path;
}

absl::StatusOr<std::vector<std::string>> LocalCopies::Of(const std::vector<std::string>& arguments) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    MEDLEY_ASSIGN_OR_RETURN(std::string path, Of(argument));
    paths.push_back(std::move(path));
  }
  return paths;
}

absl::StatusOr<std::string> LocalCopies::OfFolder(const std::string& argument) {
  if (!IsRemote(argument)) return argument;
  MEDLEY_ASSIGN_OR_RETURN(const std::string files, Of(argument + (argument.ends_with('/') ? "" : "/")));
  return std::filesystem::path(files).parent_path().string();
}

}  // namespace medley::cli
