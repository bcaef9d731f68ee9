#include "worker/checkpoint/job_settings.h"

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/fingerprint.h"
#include "worker/checkpoint/settings.h"

namespace medley::worker {
namespace {

using Record = nlohmann::json;

constexpr document::Limits kRecordLimits{.bytes = 2 * kMaxSettings, .depth = 64, .values = size_t{1} << 17};

// The settings of the job with the digest; "": the folder does not have them.
std::string KeptSettings(const Volume& root, const std::string& digest) {
  const auto text = root.files().ReadWhole(root / kJobSettingsFile, static_cast<int64_t>(kRecordLimits.bytes));
  if (!text.ok()) return "";
  const auto record = document::ParseJson(*text, kRecordLimits);
  if (!record.ok() || !record->is_object() || !record->contains("settings")) return "";
  if (record->value("digest", Record()) != digest) return "";
  return (*record)["settings"].dump(-1, ' ', false, Record::error_handler_t::replace);
}

}  // namespace

absl::Status KeepJobSettings(const Volume& root, const std::string& digest, const std::string& settings) {
  if (digest.empty() || settings.empty() || settings.size() > kMaxSettings) return absl::OkStatus();
  if (!KeptSettings(root, digest).empty()) return absl::OkStatus();
  const auto parsed = document::ParseJson(settings, kRecordLimits);
  if (!parsed.ok()) return absl::OkStatus();
  const Record record = {{"digest", digest}, {"settings", *parsed}};
  return root.files().WriteAtomic(root / kJobSettingsFile,
                                  record.dump(2, ' ', false, Record::error_handler_t::replace) + "\n");
}

absl::Status CheckJobSettings(const Volume& root, const std::string& journal_digest, const std::string& digest,
                              const std::string& settings) {
  if (digest.empty() || journal_digest.empty() || journal_digest == digest) return absl::OkStatus();
  if (!model::Comparable(journal_digest, digest)) return absl::OkStatus();  // another version wrote it
  std::string why =
      SettingsInWords(KeptSettings(root, journal_digest), settings, model::Purpose::kJob, "in its job", "in this job");
  if (why.empty()) {
    why = fmt::format("its model, schema, data or training are others, and {} does not say which", kJobSettingsFile);
  }
  return base::InvalidArgument(
      "the journal in {} belongs to a job with other settings: {}. Empty the folder, or use another one. To continue "
      "from its checkpoint on purpose, use another one and name this folder in spec.checkpoint.from",
      root.root().string(), why);
}

}  // namespace medley::worker
