// The units that jobs of other controllers have got by recommendations: those of answers with the operator's signature,
// of jobs that have not finished. A user can copy the annotation of another job, but not its signature, which covers
// the job's UID. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "kube/object.h"
#include "operator/recommend/choice.h"
#include "operator/records/record_keys.h"

namespace medley::ops::recommend {

struct GivenUnits {
  std::string pool;
  int nodes = 0;
  bool operator==(const GivenUnits&) const = default;
};

// For kChosenByAnnotation.
std::string SignGiven(const RecordKeys& keys, const std::string& uid, const GivenUnits& given);

// What the job's answer gives; nullopt: it has none, or one without a good signature.
std::optional<GivenUnits> ReadGiven(const RecordKeys& keys, const kube::Object& job);

}  // namespace medley::ops::recommend
