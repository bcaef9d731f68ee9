// What is written to a job of another controller, one step after the other. Each step follows from what the API server
// has, so any process may end between two of them. Pure, thread-safe.
//
//   suspended, no answer -> kAssign: nodes, node selector, tolerations, answer; Jobs and JobSets are resumed at once
//   TrainJob, answered   -> kRecreate, if its JobSet has another number of nodes, which JobSet forbids to change;
//                           also after the resumption, while the JobSet is suspended
//                        -> kResume
//   anything else        -> kNothing; a job that is suspended again after it was resumed stays as its user wants it
//
// A user's own values stay: node selectors and tolerations are added to, a later entry of podTemplateOverrides wins
// over ours, which is the first.
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "kube/object.h"
#include "operator/recommend/choice.h"
#include "operator/recommend/foreign_job.h"

namespace medley::ops::recommend {

// JSON: pool, nodes, usdPerHour, samplesPerSecond, and with medley.dev/samples seconds and usd.
inline constexpr char kChosenAnnotation[] = "medley.dev/recommended";
inline constexpr char kChosenByAnnotation[] = "medley.dev/recommended-by";  // the operator's signature (given_units.h)
inline constexpr char kResumedAnnotation[] = "medley.dev/resumed";          // "true"
inline constexpr char kRecommendedCondition[] = "MedleyRecommended";

enum class ForeignStep { kNothing, kAssign, kRecreate, kResume };

// `object`: of which `job` was read. `answered`: it has the annotation of an answer that this operator has signed.
// `child_nodes`: of a TrainJob's JobSet that is suspended, nullopt: there is none that is this TrainJob's.
ForeignStep NextStep(const ForeignJob& job, const kube::Object& object, bool answered, std::optional<int> child_nodes);

// Merge patches with the version of `object` as a precondition. `signature`: for kChosenByAnnotation.
kube::Json AssignPatch(const ForeignJob& job, const kube::Object& object, const Choice& choice,
                       const std::string& signature);
kube::Json ResumePatch(const ForeignJob& job, const kube::Object& object);

// A merge patch of the status with the condition MedleyRecommended; null if the object has it already. `reason`:
// CamelCase.
kube::Json ConditionPatch(const ForeignJob& job, const kube::Object& object, bool recommended,
                          const std::string& reason, const std::string& message, base::WallTime now);

}  // namespace medley::ops::recommend
