#include "cli/download/file_list.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/status.h"
#include "common/document/parse.h"

namespace medley::cli {
namespace {

constexpr size_t kMostFiles = 10'000;

// A path that leads out of the folder is refused.
bool IsInside(const std::string& path) {
  if (path.empty() || path.front() == '/') return false;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    if (part == ".." || part == ".") return false;
  }
  return true;
}

std::string TextOf(const nlohmann::json& entry, const char* field) {
  const auto found = entry.find(field);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

absl::StatusOr<std::vector<ListedFile>> ParseFileList(std::string_view text) {
  const auto bad = [] { return base::DataLoss("the pod's list of files cannot be read"); };
  const absl::StatusOr<nlohmann::json> list =
      document::ParseJson(text, {.bytes = kMostListBytes, .depth = 8, .values = 8 * kMostFiles});
  if (!list.ok() || !list->is_object()) return bad();
  const auto entries = list->find("files");
  if (entries == list->end() || !entries->is_array() || entries->size() > kMostFiles) return bad();
  std::vector<ListedFile> files;
  for (const nlohmann::json& entry : *entries) {
    if (!entry.is_object()) return bad();
    const auto bytes = entry.find("bytes");
    if (bytes == entry.end() || !bytes->is_number_integer()) return bad();
    ListedFile file{TextOf(entry, "path"), bytes->get<int64_t>(), TextOf(entry, "xxh3")};
    if (!IsInside(file.path) || file.bytes < 0) return bad();
    files.push_back(std::move(file));
  }
  if (files.empty()) return base::NotFound("the job has exported no model");
  return files;
}

}  // namespace medley::cli
