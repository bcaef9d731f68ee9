#include "worker/data/source.h"

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

}  // namespace medley::worker
