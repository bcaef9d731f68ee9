// The condition NamesAvailable: whether objects of other owners have names that the job needs.
#pragma once

#include <map>
#include <string>

#include "kube/object.h"

namespace medley::ops::lifecycle {

class Pass;

// By object ("Service NAMESPACE/NAME"): a sentence that says whose it is and what to do.
using TakenNames = std::map<std::string, std::string>;

struct TakenNamesState {
  static constexpr char kOwner[] = "taken_names";
  TakenNames taken;
};

// `existing` has the name that the job needs for an object of its own, and is not the job's. Sets the condition to
// False and publishes an Event, both with the reason NameTaken.
void ReportTakenName(Pass& pass, const kube::Object& existing);
// The job has its own object of this kind and name. The condition becomes True when no other name is taken; a job of
// which no name was ever taken has no such condition.
void ReportFreeName(Pass& pass, const std::string& kind, const kube::Key& key);

}  // namespace medley::ops::lifecycle
