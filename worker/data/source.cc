#include "worker/data/source.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "common/base/status.h"

namespace medley::worker {

absl::StatusOr<SourceFile> FileOf(const model::SourceSpec& source, const std::string& root) {
  constexpr std::string_view kScheme = "file://";
  if (source.format != "csv" && source.format != "tsv") {
    return base::Unimplemented("data source {}: the format '{}' is not supported, use csv or tsv", source.uri,
                               source.format);
  }
  if (!source.uri.starts_with("file:///")) {
    return base::InvalidArgument("data source '{}': the URI must start with file:///", source.uri);
  }
  return SourceFile{root + source.uri.substr(kScheme.size()), source.format == "tsv" ? '\t' : ','};
}

absl::StatusOr<std::vector<std::string>> FindFiles(const std::string& path) {
  std::error_code error;
  if (path.find_first_of("*?[") == std::string::npos || std::filesystem::exists(path, error)) {
    return std::vector<std::string>{path};
  }
  glob_t found = {};
  const int result = glob(path.c_str(), GLOB_NOSORT | GLOB_MARK, nullptr, &found);
  std::vector<std::string> files;
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    const std::string name = found.gl_pathv[i];
    if (!name.ends_with('/')) files.push_back(name);
  }
  globfree(&found);
  if (result == GLOB_NOSPACE) return base::ResourceExhausted("{}: there is no memory for the names of files", path);
  if (files.empty()) return base::NotFound("{} matches no file", path);
  std::ranges::sort(files);
  return files;
}

}  // namespace medley::worker
