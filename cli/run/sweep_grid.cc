#include "cli/run/sweep_grid.h"

#include <algorithm>
#include <set>

#include "common/base/status.h"
#include "common/document/parse.h"

namespace medley::cli {
namespace {

constexpr size_t kLongestTrialName = 40;  // pods of the trial have longer names

// Splits at commas outside of brackets and quotes.
std::vector<std::string> SplitValues(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

std::vector<std::string> WordsOf(const std::string& field) {
  std::vector<std::string> words(1);
  for (const char c : field) {
    if (c == '.') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

absl::Status SetField(kube::Json& spec, const std::string& field, const kube::Json& value) {
  kube::Json* at = &spec;
  const std::vector<std::string> words = WordsOf(field);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (at->is_null()) *at = kube::Json::object();
    if (at->is_object()) at = &(*at)[words[i]];
  }
  if (at->is_null()) *at = kube::Json::object();
  if (!at->is_object()) return base::InvalidArgument("--set {}: a field before the last one is no object", field);
  (*at)[words.back()] = value;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SweepAxis> ParseAxis(const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    return base::InvalidArgument(
        "--set {}: {}; write a field of the job and its values, such as training.optimizer.learningRate=0.1,0.03", text,
        why);
  };
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return refuse("there is no =");
  SweepAxis axis;
  axis.field = text.substr(0, equals);
  if (axis.field.starts_with("spec.")) axis.field.erase(0, 5);
  for (const std::string& word : WordsOf(axis.field)) {
    if (word.empty() || word.find_first_of(" \t[]/") != std::string::npos)
      return refuse("the field is not well formed");
  }
  for (const std::string& word : SplitValues(text.substr(equals + 1))) {
    if (word.find_first_not_of(" \t") == std::string::npos) return refuse("a value is empty");
    auto value = document::Parse(word);
    if (!value.ok() && std::string_view("[{\"'").find(word.front()) != std::string_view::npos) {
      return refuse("the value " + word + " cannot be read: " + base::Message(value.status()));
    }
    if (!value.ok()) value = kube::Json(word);  // a text that begins like another kind of YAML, such as >50K
    if (std::ranges::find(axis.values, *value) != axis.values.end())
      return refuse("the value " + word + " occurs twice");
    axis.values.push_back(*std::move(value));
  }
  return axis;
}

absl::StatusOr<std::vector<Trial>> MakeTrials(const kube::Object& job, const std::vector<SweepAxis>& axes) {
  if (axes.empty()) {
    return base::InvalidArgument("nothing to vary: give at least one --set FIELD=VALUE,VALUE");
  }
  std::set<std::string> fields;
  size_t count = 1;
  for (const SweepAxis& axis : axes) {
    if (!fields.insert(axis.field).second)
      return base::InvalidArgument("--set {}: the field is given twice", axis.field);
    if (axis.values.size() > kMostTrials || (count *= axis.values.size()) > kMostTrials) {
      return base::InvalidArgument(
          "the values of --set make more than {} combinations, and each is a training of its own: give fewer values",
          kMostTrials);
    }
  }
  const std::string base_name = job.key().name.substr(0, kLongestTrialName);
  std::vector<Trial> trials;
  for (size_t i = 0; i < count; ++i) {
    Trial trial{fmt::format("{}-{}", base_name, i + 1), {}, job};
    size_t rest = i;
    for (size_t a = axes.size(); a-- > 0;) {
      const SweepAxis& axis = axes[a];
      trial.settings.emplace_back(axis.field, axis.values[rest % axis.values.size()]);
      rest /= axis.values.size();
    }
    std::ranges::reverse(trial.settings);
    kube::Json& json = trial.job.mutable_json();
    json["metadata"]["name"] = trial.name;
    for (const auto& [field, value] : trial.settings) MEDLEY_RETURN_IF_ERROR(SetField(json["spec"], field, value));
    trials.push_back(std::move(trial));
  }
  return trials;
}

std::vector<std::string> ShortNames(const std::vector<SweepAxis>& axes) {
  std::vector<std::string> names;
  for (const SweepAxis& axis : axes) {
    const std::string last = WordsOf(axis.field).back();
    const auto same =
        std::ranges::count_if(axes, [&](const SweepAxis& each) { return WordsOf(each.field).back() == last; });
    names.push_back(same > 1 ? axis.field : last);
  }
  return names;
}

}  // namespace medley::cli
