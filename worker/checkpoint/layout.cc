#include "worker/checkpoint/layout.h"

#include <charconv>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/hasher.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "worker/checkpoint/settings.h"

namespace medley::worker {
namespace {

using Json = nlohmann::json;

template <typename T>
absl::Status Get(const Json& object, const char* field, T& out) {
  const auto found = object.find(field);
  if (found == object.end()) return base::DataLoss("manifest: the field {} is missing", field);
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return base::DataLoss("manifest: the field {} is not a string", field);
    out = found->template get<std::string>();
  } else {
    if (!found->is_number_integer()) return base::DataLoss("manifest: the field {} is not an integer", field);
    const auto value = found->template get<int64_t>();
    if (value < 0 || !std::in_range<T>(value)) return base::DataLoss("manifest: the field {} is out of range", field);
    out = static_cast<T>(value);
  }
  return absl::OkStatus();
}

// Removes `prefix` and a number from the front of `rest`. Returns false if it does not begin with them.
template <typename T>
bool Take(std::string_view prefix, std::string_view& rest, T& number) {
  if (!rest.starts_with(prefix)) return false;
  rest.remove_prefix(prefix.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || number < 0) return false;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return true;
}

constexpr int kFormat = 2;
constexpr size_t kMaxFileName = 255;
constexpr document::Limits kLimits{.bytes = size_t{kMaxManifest}, .depth = 4, .values = 4 * kMaxManifestFiles + 100};
constexpr char kDigestMark[] = "xxh3 ";  // begins the last line, which holds the digest of the lines before

std::string DigestOf(std::string_view text) {
  base::Hasher hasher;
  hasher.Add(text);
  return hasher.Hex();
}

// Removes the last line and checks the rest by it. A manifest of format 1 has no such line.
absl::Status TakeDigest(std::string_view& text) {
  const size_t at = text.rfind(kDigestMark);
  const std::string_view line = at == std::string_view::npos ? std::string_view() : text.substr(at);
  if (line.empty()) return absl::OkStatus();
  text = text.substr(0, at);
  const std::string digest = DigestOf(text);
  if (line == kDigestMark + digest + "\n") return absl::OkStatus();
  return base::DataLoss("manifest: its digest is {}, its last line says {}", digest,
                        line.substr(sizeof kDigestMark - 1, 32));
}

}  // namespace

std::string CheckpointFolder(const CheckpointName& name) {
  std::string folder = fmt::format("step-{:08}", name.step);
  if (name.generation > 0) folder += fmt::format("-e{}", name.generation);
  if (name.attempt > 0) folder += fmt::format("-{}", name.attempt);
  return folder;
}

absl::StatusOr<CheckpointName> ParseCheckpointFolder(std::string_view folder) {
  CheckpointName name;
  std::string_view rest = folder;
  const bool well_formed = Take("step-", rest, name.step) &&
                           (rest.empty() || (Take("-e", rest, name.generation) &&
                                             (rest.empty() || (Take("-", rest, name.attempt) && rest.empty()))));
  if (well_formed && CheckpointFolder(name) == folder) return name;
  return base::InvalidArgument("'{}' is not the name of a checkpoint folder (step-N-eG)", folder);
}

std::string DenseFileName(int64_t generation, int device) {
  return fmt::format("dense-e{}-t{}.mck", generation, device);
}

std::string RowsFileName(int64_t generation, int shard) { return fmt::format("rows-e{}-{}.mck", generation, shard); }

std::string ToJson(const CheckpointManifest& manifest) {
  Json files = Json::array();
  for (const CheckpointFileEntry& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.digest}});
  }
  Json json = {
      {"format", kFormat},
      {"jobUid", manifest.job_uid},
      {"modelFingerprint", manifest.model_fingerprint},
      {"generation", manifest.generation},
      {"step", manifest.step},
      {"ledger", {{"rows", manifest.rows}, {"dataEpochs", manifest.data_epochs}, {"batchSize", manifest.batch_size}}},
      {"folder", manifest.folder},
      {"files", files}};
  if (!manifest.settings.empty() && manifest.settings.size() <= kMaxSettings) json["settings"] = manifest.settings;
  if (!manifest.origin_uid.empty()) {
    json["origin"] = {{"jobUid", manifest.origin_uid}, {"generation", manifest.origin_generation}};
  }
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return text + kDigestMark + DigestOf(text) + "\n";
}

absl::StatusOr<CheckpointManifest> ParseManifest(std::string_view text) {
  const size_t bytes = text.size();
  MEDLEY_RETURN_IF_ERROR(TakeDigest(text));
  const absl::StatusOr<Json> parsed = document::ParseJson(text, kLimits);
  if (!parsed.ok()) {
    return base::DataLoss("manifest: the file is not a JSON object: {}", base::Message(parsed.status()).substr(0, 200));
  }
  const Json& json = *parsed;
  if (!json.is_object()) return base::DataLoss("manifest: the file is not a JSON object");
  CheckpointManifest manifest;
  int format = 0;
  MEDLEY_RETURN_IF_ERROR(Get(json, "format", format));
  if (format != kFormat) {
    return base::DataLoss("manifest: format {} is of another version of Medley, this program reads format {}", format,
                          kFormat);
  }
  if (text.size() == bytes) return base::DataLoss("manifest: the last line, which holds the digest, is missing");
  MEDLEY_RETURN_IF_ERROR(Get(json, "jobUid", manifest.job_uid));
  MEDLEY_RETURN_IF_ERROR(Get(json, "modelFingerprint", manifest.model_fingerprint));
  MEDLEY_RETURN_IF_ERROR(Get(json, "generation", manifest.generation));
  MEDLEY_RETURN_IF_ERROR(Get(json, "step", manifest.step));
  MEDLEY_RETURN_IF_ERROR(Get(json, "folder", manifest.folder));
  const auto ledger = json.find("ledger");
  if (ledger == json.end() || !ledger->is_object())
    return base::DataLoss("manifest: the field ledger is missing or not an object");
  MEDLEY_RETURN_IF_ERROR(Get(*ledger, "rows", manifest.rows));
  MEDLEY_RETURN_IF_ERROR(Get(*ledger, "dataEpochs", manifest.data_epochs));
  MEDLEY_RETURN_IF_ERROR(Get(*ledger, "batchSize", manifest.batch_size));
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array())
    return base::DataLoss("manifest: the field files is missing or not a list");
  if (files->size() > kMaxManifestFiles) {
    return base::DataLoss("manifest: it names {} files, a checkpoint has at most {}", files->size(), kMaxManifestFiles);
  }
  std::set<std::string> names;
  for (const Json& entry : *files) {
    if (!entry.is_object()) return base::DataLoss("manifest: an entry of files is not an object");
    CheckpointFileEntry& file = manifest.files.emplace_back();
    MEDLEY_RETURN_IF_ERROR(Get(entry, "name", file.name));
    MEDLEY_RETURN_IF_ERROR(Get(entry, "bytes", file.bytes));
    MEDLEY_RETURN_IF_ERROR(Get(entry, "xxh3", file.digest));
    const bool plain = !file.name.empty() && file.name.size() <= kMaxFileName && file.name != "." &&
                       file.name != ".." && file.name.find('/') == std::string::npos && file.name != "manifest.json";
    if (!plain) return base::DataLoss("manifest: '{}' is not a plain file name", file.name.substr(0, kMaxFileName));
    if (!names.insert(file.name).second) return base::DataLoss("manifest: the file {} is named twice", file.name);
  }
  if (json.contains("settings")) MEDLEY_RETURN_IF_ERROR(Get(json, "settings", manifest.settings));
  if (const auto origin = json.find("origin"); origin != json.end()) {
    if (!origin->is_object()) return base::DataLoss("manifest: the field origin is not an object");
    MEDLEY_RETURN_IF_ERROR(Get(*origin, "jobUid", manifest.origin_uid));
    MEDLEY_RETURN_IF_ERROR(Get(*origin, "generation", manifest.origin_generation));
  }
  return manifest;
}

}  // namespace medley::worker
