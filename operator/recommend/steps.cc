#include "operator/recommend/steps.h"

#include <algorithm>

namespace medley::ops::recommend {
namespace {

using kube::Json;

Json AnswerJson(const Choice& choice) {
  Json answer = {{"pool", choice.pool},
                 {"nodes", choice.nodes},
                 {"usdPerHour", choice.usd_per_hour},
                 {"samplesPerSecond", choice.throughput}};
  if (choice.seconds > 0) answer.update({{"seconds", choice.seconds}, {"usd", choice.usd}});
  return answer;
}

// The user's own tolerations, and those of the pool that are not among them.
Json Tolerations(const Json& own, const Json& pool) {
  Json all = own.is_array() ? own : Json::array();
  for (const Json& each : pool) {
    if (std::ranges::find(all, each) == all.end()) all.push_back(each);
  }
  return all;
}

void AddPlace(const ForeignJob& job, const Choice& choice, Json& pod_spec) {
  for (const auto& [key, value] : choice.node_selector) {
    if (!job.node_selector.contains(key)) pod_spec["nodeSelector"][key] = value;
  }
  if (Json all = Tolerations(job.tolerations, choice.tolerations); all != job.tolerations) {
    pod_spec["tolerations"] = std::move(all);
  }
}

void AssignJob(const ForeignJob& job, const Choice& choice, Json& spec) {
  if (choice.nodes != job.nodes) spec["parallelism"] = spec["completions"] = choice.nodes;
  Json pod_spec = Json::object();
  AddPlace(job, choice, pod_spec);
  if (!pod_spec.empty()) spec["template"]["spec"] = std::move(pod_spec);
}

// A merge patch replaces lists, so the whole one is sent.
void AssignJobSet(const ForeignJob& job, const kube::Object& object, const Choice& choice, Json& spec) {
  Json replicated = object.At("/spec/replicatedJobs");
  Json& pod_spec = replicated[static_cast<size_t>(job.target_index)]["template"]["spec"]["template"]["spec"];
  AddPlace(job, choice, pod_spec);
  spec["replicatedJobs"] = std::move(replicated);
}

void AssignTrainJob(const ForeignJob& job, const kube::Object& object, const Choice& choice, Json& spec) {
  spec["trainer"]["numNodes"] = choice.nodes;
  Json place = Json::object();
  AddPlace(job, choice, place);
  if (place.empty()) return;
  Json overrides = Json::array({{{"targetJobs", {{{"name", job.target}}}}, {"spec", std::move(place)}}});
  if (const Json& own = object.At("/spec/podTemplateOverrides"); own.is_array()) {
    overrides.insert(overrides.end(), own.begin(), own.end());
  }
  spec["podTemplateOverrides"] = std::move(overrides);
}

Json PatchOf(const kube::Object& object) {
  return {{"metadata", {{"resourceVersion", object.resource_version()}, {"uid", object.uid()}}}};
}

void Resume(const ForeignJob& job, Json& patch) {
  patch["metadata"]["annotations"][kResumedAnnotation] = "true";
  if (!job.queued) patch["spec"]["suspend"] = false;
}

}  // namespace

ForeignStep NextStep(const ForeignJob& job, const kube::Object& object, bool answered, std::optional<int> child_nodes) {
  if (!job.wanted || job.finished) return ForeignStep::kNothing;
  // Trainer may make the JobSet of an older spec when the job is resumed already.
  if (answered && job.kind == ForeignKind::kTrainJob && child_nodes && job.nodes && *child_nodes != *job.nodes) {
    return ForeignStep::kRecreate;
  }
  if (!job.suspended) return ForeignStep::kNothing;
  if (!answered) return ForeignStep::kAssign;
  return object.annotation(kResumedAnnotation) == "true" ? ForeignStep::kNothing : ForeignStep::kResume;
}

Json AssignPatch(const ForeignJob& job, const kube::Object& object, const Choice& choice,
                 const std::string& signature) {
  Json patch = PatchOf(object);
  patch["metadata"]["annotations"] = {{kChosenAnnotation, kube::Dump(AnswerJson(choice))},
                                      {kChosenByAnnotation, signature}};
  Json spec = Json::object();
  switch (job.kind) {
    case ForeignKind::kJob:
      AssignJob(job, choice, spec);
      break;
    case ForeignKind::kJobSet:
      AssignJobSet(job, object, choice, spec);
      break;
    case ForeignKind::kTrainJob:
      AssignTrainJob(job, object, choice, spec);
      break;
  }
  if (!spec.empty()) patch["spec"] = std::move(spec);
  // Trainer refuses to change podTemplateOverrides and to resume at once.
  if (job.kind != ForeignKind::kTrainJob) Resume(job, patch);
  return patch;
}

Json ResumePatch(const ForeignJob& job, const kube::Object& object) {
  Json patch = PatchOf(object);
  Resume(job, patch);
  return patch;
}

Json ConditionPatch(const ForeignJob& job, const kube::Object& object, bool recommended, const std::string& reason,
                    const std::string& message, base::WallTime now) {
  const std::string status = recommended ? "True" : "False", time = base::FormatTime(now);
  Json condition = {{"type", kRecommendedCondition},
                    {"status", status},
                    {"reason", reason},
                    {"message", message},
                    {"lastTransitionTime", time}};
  if (job.kind == ForeignKind::kJob) condition["lastProbeTime"] = time;
  Json conditions = Json::array();
  if (const Json& present = object.At("/status/conditions"); present.is_array()) conditions = present;
  const auto old = std::ranges::find_if(conditions, [](const Json& each) {
    return each.is_object() && each.value("type", Json()) == kRecommendedCondition;
  });
  if (old == conditions.end()) {
    conditions.push_back(std::move(condition));
  } else {
    if (old->value("status", Json()) == status) {
      if (old->value("reason", Json()) == reason && old->value("message", Json()) == message) return nullptr;
      condition["lastTransitionTime"] = old->value("lastTransitionTime", Json(time));
    }
    *old = std::move(condition);
  }
  Json patch = PatchOf(object);
  patch["status"]["conditions"] = std::move(conditions);
  return patch;
}

}  // namespace medley::ops::recommend
