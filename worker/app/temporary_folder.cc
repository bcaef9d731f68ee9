#include "worker/app/temporary_folder.h"

#include <cstdlib>
#include <system_error>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::worker {

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make() {
  MEDLEY_ASSIGN_OR_RETURN(std::filesystem::path path, base::MakeTempDir("medley-worker"));
  setenv("TMPDIR", path.c_str(), 1);
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(std::move(path)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // the folder itself lies where this process may write no more
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace medley::worker
