#include "worker/export/parse_names.h"

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/hex.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

// Strings, of which those of columns without a name are empty.
absl::StatusOr<std::vector<std::string>> TextsOf(const document::Reader& root, const std::string& key) {
  std::vector<std::string> texts;
  if (!root.Has(key)) return texts;
  const nlohmann::json& list = root.tree().at(key);
  if (!list.is_array()) return base::InvalidArgument("{}: must be a list of strings", key);
  for (const nlohmann::json& text : list) {
    if (!text.is_string()) return base::InvalidArgument("{}[{}]: must be a string", key, texts.size());
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

}  // namespace

absl::Status ReadNames(const document::Reader& root, const std::string& key, const std::string& bytes_key,
                       std::vector<std::string>& names) {
  MEDLEY_ASSIGN_OR_RETURN(names, TextsOf(root, key));
  if (!root.Has(bytes_key)) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> bytes, TextsOf(root, bytes_key));
  if (bytes.size() != names.size()) {
    return base::InvalidArgument("{}: has {} names, {} has {}", bytes_key, bytes.size(), key, names.size());
  }
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StatusOr<std::string> original = base::BytesOfHex(bytes[i]);
    if (!original.ok()) return base::Annotate(original.status(), fmt::format("{}[{}]", bytes_key, i));
    names[i] = *std::move(original);
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
