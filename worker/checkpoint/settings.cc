#include "worker/checkpoint/settings.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "common/document/difference.h"
#include "common/document/parse.h"
#include "common/model/fingerprint.h"

namespace medley::worker {
namespace {

constexpr document::Limits kSettingsLimits{.bytes = kMaxSettings, .depth = 64, .values = size_t{1} << 17};

// Null: there are none.
nlohmann::json ParsedSettings(const std::string& text) {
  auto parsed = document::ParseJson(text, kSettingsLimits);
  return parsed.ok() && parsed->is_object() ? *std::move(parsed) : nlohmann::json();
}

// The same as this version writes it.
nlohmann::json CountedSettings(const std::string& text, model::Purpose purpose) {
  const nlohmann::json settings = ParsedSettings(text);
  return settings.is_null() ? settings : model::CountedFields(settings, purpose);
}

}  // namespace

bool IsOfModel(const CheckpointManifest& manifest, std::string_view fingerprint, const std::string& settings) {
  if (manifest.model_fingerprint == fingerprint) return true;
  const nlohmann::json before = ParsedSettings(manifest.settings), after = ParsedSettings(settings);
  return !before.is_null() && !after.is_null() &&
         model::Fingerprint(before, model::Purpose::kModel) == model::Fingerprint(after, model::Purpose::kModel);
}

std::string SettingsInWords(const std::string& stored, const std::string& own, model::Purpose purpose,
                            const std::string& old_place, const std::string& new_place) {
  const nlohmann::json before = CountedSettings(stored, purpose), after = CountedSettings(own, purpose);
  if (before.is_null() || after.is_null()) return "";
  const std::vector<document::Difference> differences = document::Differences(before, after, "spec");
  return differences.empty() ? "" : document::Sentence(differences, old_place, new_place);
}

std::string WhyOtherSettings(const std::string& stored, const std::string& own) {
  const std::string words = SettingsInWords(stored, own, model::Purpose::kModel, "in the checkpoint", "in this job");
  if (words.empty()) {
    return "its model, its data or its training are not those of this job, and it does not say which: another version "
           "of Medley wrote it";
  }
  return "it was trained with other settings: " + words +
         ". Only the epochs, the evaluations and how the job is planned may be others";
}

}  // namespace medley::worker
