// Names of columns and classes in the files of an export.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "common/document/reader.h"

namespace medley::worker {

// Replaces `names` by those of a list, which are in any encoding: `bytes_key` has them in hexadecimal digits when they
// are no UTF-8. That of a column without a name is empty. Errors: InvalidArgument.
absl::Status ReadNames(const document::Reader& root, const std::string& key, const std::string& bytes_key,
                       std::vector<std::string>& names);

}  // namespace medley::worker
