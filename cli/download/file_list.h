// The list of files that the reader pod answers with. The pod runs in the job's namespace, so its answer is not
// trusted. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace medley::cli {

struct ListedFile {
  std::string path;  // relative, never out of the folder
  int64_t bytes = 0;
  std::string hash;
};

inline constexpr size_t kMostListBytes = size_t{8} << 20;

// Errors: DataLoss (no such list, or longer than any); NotFound (it is empty).
absl::StatusOr<std::vector<ListedFile>> ParseFileList(std::string_view text);

}  // namespace medley::cli
