#include "common/model/fingerprint.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/base/hash.h"
#include "common/model/job_schema.h"

namespace medley::model {
namespace {

using nlohmann::json;

constexpr char kVersion[] = "2-";

constexpr unsigned kModel = static_cast<unsigned>(Purpose::kModel), kJob = static_cast<unsigned>(Purpose::kJob),
                   kProfile = static_cast<unsigned>(Purpose::kProfile);
constexpr unsigned kAll = kModel | kJob | kProfile;

constexpr std::array kUncounted = std::to_array<Uncounted>({
    {"objective", kAll, "it is what a plan should reach; every plan trains the same"},
    {"planner", kAll, "it says how a plan is found, and may change while the job runs"},
    {"profiling", kAll, "it says how long a job waits"},
    {"resources", kAll, "it says where the job may run"},
    {"elasticity", kAll, "it says when the plan changes"},
    {"runPolicy", kAll, "it says how the job starts, pauses and ends"},
    {"checkpoint", kAll, "it says where and how often the same state is saved, and where it is first read from"},
    {"storage", kAll, "it says how pods reach the files, which their addresses name"},
    {"template", kAll, "it is about pods"},
    {"data.volume", kAll, "it is where pods find the files, which their paths name"},
    {"data.maxBadRows", kAll, "it bounds what is left out in any case"},
    {"training.microBatches", kModel | kJob, "it divides the work of a step, whose result is the same"},
    {"training.sync", kAll, "it says how replicas work together, as a plan does; a checkpoint has what they agreed on"},
    {"training.tensorBoard", kAll, "it is one more file about the same training"},
    {"training.epochs", kModel | kProfile, "a checkpoint is as good for more of them, and a step costs the same"},
    {"export", kModel | kProfile, "it chooses among the models that were trained"},
    {"data.test", kModel | kProfile, "it is only evaluated"},
    {"data.validation.uri", kModel | kProfile, "it is only evaluated; a part of the training data is not trained"},
    {"data.validation.format", kModel | kProfile, "as data.validation.uri"},
    {"data.validation.labels", kModel | kProfile, "as data.validation.uri"},
    {"data.validation.files", kModel | kProfile, "as data.validation.uri"},
    {"training.earlyStopping", kModel | kProfile, "it says when the training ends, not how it goes"},
    {"training.evaluation.metric", kModel | kProfile, "it chooses among the models that were trained"},
    {"training.evaluation.everyEpochs", kAll, "the training waits for an evaluation and goes on the same",
     "training.earlyStopping"},
    {"training.evaluation.everySteps", kAll, "as training.evaluation.everyEpochs", "training.earlyStopping"},
    {"training.embeddings.memoryBudget", kAll, "it says where rows are; their values are the same"},
    {"training.embeddings.diskBudget", kAll, "as training.embeddings.memoryBudget"},
    {"training.seed", kProfile, "other numbers cost the same"},
    {"training.classWeights", kProfile, "factors of the loss cost nothing"},
    {"training.clipNorm", kProfile, "any norm costs the same, but none costs less", "", true},
    {"training.optimizer.learningRate", kProfile, "another factor costs the same"},
    {"training.optimizer.schedule", kProfile, "another factor in each step costs the same"},
    {"training.optimizer.beta1", kProfile, "another factor costs the same"},
    {"training.optimizer.beta2", kProfile, "another factor costs the same"},
    {"training.optimizer.epsilon", kProfile, "another summand costs the same"},
    {"training.optimizer.initialAccumulator", kProfile, "another summand costs the same"},
    {"training.optimizer.alpha", kProfile, "another factor costs the same"},
    {"training.optimizer.momentum", kProfile, "another factor costs the same, but none needs less state", "", true},
    {"training.optimizer.nesterov", kProfile, "it is one more addition"},
    {"training.optimizer.beta", kProfile, "another summand costs the same"},
    {"training.optimizer.l1", kProfile, "another summand costs the same"},
    {"training.optimizer.l2", kProfile, "another summand costs the same"},
    {"training.optimizer.weightDecay", kProfile, "it is one more multiplication"},
    {"training.optimizer.rowDecay", kProfile, "as training.optimizer.weightDecay"},
    {"program.checkpoint", kAll, "it says how the same state is saved"},
    {"program.scaling", kAll, "it says where the program may run"},
    {"program.hangTimeout", kAll, "it says when a program that makes no progress is restarted"},
    {"program.progress", kModel, "it says how steps are counted, not what they do"},
    {"program.steps", kModel | kProfile, "a checkpoint is as good for more of them, and a step costs the same"},
    {"model.initialFrom", kProfile, "other numbers cost the same"},
    {"data.shuffle", kProfile, "another order of the samples costs the same"},
    {"data.weight", kProfile, "factors of the loss cost nothing"},
});

const json* FieldAt(const json& object, std::string_view path) {
  const json* at = &object;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const auto found = at->is_object() ? at->find(std::string(path.substr(0, dot))) : at->end();
    if (!at->is_object() || found == at->end() || found->is_null()) return nullptr;
    at = &*found;
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return at;
}

const Uncounted* RuleOf(std::string_view path, Purpose purpose, const json& spec) {
  for (const Uncounted& rule : kUncounted) {
    if (path != rule.field || (rule.purposes & static_cast<unsigned>(purpose)) == 0) continue;
    const bool counts = purpose == Purpose::kJob && *rule.unless != '\0' && FieldAt(spec, rule.unless) != nullptr;
    return counts ? nullptr : &rule;
  }
  return nullptr;
}

// A whole number has one form, so that 1 and 1.0 are one text.
json OneForm(const json& value) {
  if (!value.is_number_float()) return value;
  const double number = value.get<double>();
  constexpr double kExact = 9007199254740992;  // 2^53
  if (number == std::floor(number) && std::abs(number) <= kExact) return static_cast<int64_t>(number);
  return value;
}

// Whether the keyword of a field's schema has this value. `schema` may be null.
bool Says(const json* schema, const char* keyword, const json& value) {
  if (schema == nullptr) return false;
  const auto found = schema->find(keyword);
  return found != schema->end() && OneForm(*found) == value;
}

// Walks a spec beside its schema.
class FieldWalk {
 public:
  FieldWalk(const json& spec, Purpose purpose, bool defaults) : spec_(spec), purpose_(purpose), defaults_(defaults) {}

  json Value(const json& value, const json* schema, const std::string& path) const {
    if (value.is_object()) return Object(value, schema, path);
    if (!value.is_array()) return OneForm(value);
    json list = json::array();
    const json* items = schema == nullptr ? nullptr : FieldAt(*schema, "items");
    for (const json& item : value) list.push_back(Value(item, items, path + "[]"));
    return list;
  }

 private:
  json Object(const json& object, const json* schema, const std::string& path) const {
    json kept = json::object();
    const json* const fields = schema == nullptr ? nullptr : FieldAt(*schema, "properties");
    for (const auto& [name, value] : object.items()) {
      if (value.is_null()) continue;
      const std::string where = path.empty() ? name : path + "." + name;
      const json* const known = fields == nullptr ? nullptr : FieldAt(*fields, name);
      const Uncounted* const rule = RuleOf(where, purpose_, spec_);
      if (rule != nullptr && !rule->presence) continue;
      json part = Value(value, known, where);
      const bool nothing = (part.is_object() && part.empty()) || (rule != nullptr && part == 0);
      const bool as_absent = Says(known, "x-absent", part) || (!defaults_ && Says(known, "default", part));
      if (nothing || as_absent) continue;
      kept[name] = rule != nullptr ? json(true) : std::move(part);
    }
    if (defaults_ && fields != nullptr) AddDefaults(*fields, path, kept);
    return kept;
  }

  void AddDefaults(const json& fields, const std::string& path, json& object) const {
    for (const auto& [name, schema] : fields.items()) {
      const std::string where = path.empty() ? name : path + "." + name;
      const Uncounted* const rule = RuleOf(where, purpose_, spec_);
      const json* const standard = FieldAt(schema, "default");
      if (object.contains(name) || rule != nullptr || standard == nullptr) continue;
      json value = Value(*standard, &schema, where);
      if (!value.is_object() || !value.empty()) object[name] = std::move(value);
    }
  }

  const json& spec_;
  const Purpose purpose_;
  const bool defaults_;
};

json CountedPart(const json& spec, Purpose purpose, bool defaults) {
  if (!spec.is_object()) return json::object();
  return FieldWalk(spec, purpose, defaults).Value(spec, &JobSchema(), "");
}

std::string FieldsHash(const json& spec, Purpose purpose) {
  const std::string text = CountedPart(spec, purpose, false).dump(-1, ' ', false, json::error_handler_t::replace);
  return base::HashHex(kVersion + std::to_string(static_cast<unsigned>(purpose)) + text);
}

}  // namespace

std::span<const Uncounted> UncountedFields() { return kUncounted; }

json CountedFields(const json& spec, Purpose purpose) { return CountedPart(spec, purpose, true); }

std::string Fingerprint(const json& spec, Purpose purpose) { return kVersion + FieldsHash(spec, purpose); }

std::string ProfileHash(const json& spec) { return FieldsHash(spec, Purpose::kProfile); }

bool Comparable(std::string_view a, std::string_view b) {
  const auto version = [](std::string_view text) {
    const size_t end = text.find('-');
    return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
  };
  return version(a) == version(b);
}

}  // namespace medley::model
