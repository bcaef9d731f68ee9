#include "operator/api/validate.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/document/parse.h"
#include "kube/schema/rules.h"
#include "kube/schema/shape.h"
#include "kube/schema/validate.h"
#include "operator/api/crds.h"
#include "operator/api/training_job.h"

namespace medley::ops {
namespace {

using kube::Json;

// The schema and the compiled rules of a bundled CRD.
class Definition {
 public:
  explicit Definition(std::string_view file) : schema_(SchemaOf(file)), rules_(Compiled(schema_)) {}

  // The sentences of the rules that `object` breaks, each once. `old`: what it replaces, or null.
  std::vector<std::string> Broken(Json object, const Json* old) const {
    const kube::Schema schema(&schema_, nullptr);
    kube::ApplyDefaults(&object, schema);
    Json before;
    if (old != nullptr) {
      before = *old;
      kube::ApplyDefaults(&before, schema);
      old = &before;
    }
    kube::FieldErrors errors;
    rules_.Check(object, old, &errors);
    // What lacks a required field or has a wrong type is reported as such: its rules have no value.
    const bool without_value = std::ranges::any_of(
        errors, [](const kube::FieldError& e) { return e.what.find(" evaluating rule: ") != std::string::npos; });
    std::vector<std::string> sentences;
    if (without_value) {
      kube::FieldErrors values;
      kube::ValidateSchema(object, schema, old, "", &values);
      for (const kube::FieldError& error : values) Add(error.field + ": " + error.what, sentences);
      if (!sentences.empty()) return sentences;
    }
    for (const kube::FieldError& error : errors) Add(Sentence(error.what), sentences);
    return sentences;
  }

 private:
  static Json SchemaOf(std::string_view file) {
    for (const auto& [name, text] : BundledCrds()) {
      if (name != file) continue;
      const auto crd = document::Parse(text);
      MEDLEY_CHECK(crd.ok(), base::ToString(crd.status()));
      return crd->at(Json::json_pointer("/spec/versions/0/schema/openAPIV3Schema"));
    }
    MEDLEY_CHECK(false, "no such CRD is bundled");
  }
  static kube::Rules Compiled(const Json& schema) {
    auto rules = kube::Rules::Compile(schema);
    MEDLEY_CHECK(rules.ok(), base::ToString(rules.status()));
    return *std::move(rules);
  }
  // What follows `Invalid value: "object": `.
  static std::string Sentence(const std::string& what) {
    const size_t end = what.find("\": ");
    return end == std::string::npos ? what : what.substr(end + 3);
  }
  static void Add(std::string sentence, std::vector<std::string>& sentences) {
    if (std::ranges::find(sentences, sentence) == sentences.end()) sentences.push_back(std::move(sentence));
  }

  const Json schema_;
  const kube::Rules rules_;
};

const Definition& JobDefinition() {
  static const Definition definition("trainingjobs.yaml");
  return definition;
}

const Definition& PoolDefinition() {
  static const Definition definition("resourcepools.yaml");
  return definition;
}

// What rules are about: an operator's status is its own.
Json Judged(const kube::Object& object) {
  Json judged = {{"metadata", {{"name", object.key().name}}}};
  if (const Json& spec = object.At("/spec"); !spec.is_null()) judged["spec"] = spec;
  return judged;
}

// With the defaults of absent parents, which a schema does not reach.
Json Completed(const Json& spec) {
  Json complete = spec;
  ApplyJobDefaults(complete);
  return {{"metadata", {{"name", "job"}}}, {"spec", std::move(complete)}};
}

}  // namespace

std::vector<std::string> ValidateTrainingJob(const kube::Object& job) {
  if (!job.At("/spec").is_object()) return {"spec must be an object"};
  return JobDefinition().Broken(Judged(job), nullptr);
}

std::vector<std::string> ValidateResourcePool(const kube::Object& pool) {
  return PoolDefinition().Broken(Judged(pool), nullptr);
}

std::vector<std::string> ValidateTrainingJobUpdate(const Json& before, const Json& after) {
  const Json old = Completed(before);
  const Json now = Completed(after);
  const std::vector<std::string> always = JobDefinition().Broken(now, nullptr);
  std::vector<std::string> broken = JobDefinition().Broken(now, &old);
  std::erase_if(broken, [&](const std::string& each) { return std::ranges::find(always, each) != always.end(); });
  return broken;
}

}  // namespace medley::ops
