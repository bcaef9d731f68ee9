#include "worker/data/source.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "common/base/status.h"
#include "common/model/data_format.h"

namespace medley::worker {

namespace {

// The path as a pattern of glob, in which folders that exist mean themselves: "data [1]/*.csv" is about this folder.
std::string PatternOf(const std::string& path) {
  size_t literal = 0;  // the length of the longest beginning of the path that is a folder
  std::error_code error;
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    if (!std::filesystem::is_directory(path.substr(0, end), error)) break;
    literal = end;
  }
  std::string pattern;
  for (size_t i = 0; i < path.size(); ++i) {
    if (i < literal && std::string_view("*?[]\\").find(path[i]) != std::string_view::npos) pattern += '\\';
    pattern += path[i];
  }
  return pattern;
}

}  // namespace

absl::StatusOr<SourceFile> FileOf(const model::SourceSpec& source, const std::string& root) {
  constexpr std::string_view kScheme = "file://";
  const model::DataFormat* const format = model::DataFormatNamed(source.format);
  if (format == nullptr || source.arrays()) {
    return base::Unimplemented("data source {}: the format '{}' has no rows, but {} have", source.uri, source.format,
                               model::TableFormats());
  }
  if (!source.uri.starts_with("file:///")) {
    return base::InvalidArgument("data source '{}': the URI must start with file:///", source.uri);
  }
  return SourceFile{.path = root + source.uri.substr(kScheme.size()),
                    .delimiter = format->delimiter,
                    .columns = format->kind == model::FormatKind::kColumns ? format->name : ""};
}

absl::StatusOr<std::vector<std::string>> FindFiles(const std::string& path) {
  std::error_code error;
  if (path.find_first_of("*?[") == std::string::npos || std::filesystem::exists(path, error)) {
    return std::vector<std::string>{path};
  }
  glob_t found = {};
  const int result = glob(PatternOf(path).c_str(), GLOB_NOSORT | GLOB_MARK, nullptr, &found);
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
