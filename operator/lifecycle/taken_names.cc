#include "operator/lifecycle/taken_names.h"

#include <fmt/format.h>

#include "operator/lifecycle/pass.h"

namespace medley::ops::lifecycle {
namespace {

std::string NameOf(const std::string& kind, const kube::Key& key) { return kind + " " + key.ToString(); }

}  // namespace

void ReportTakenName(Pass& pass, const kube::Object& existing) {
  const std::string what = NameOf(existing.kind(), existing.key());
  const auto owner = existing.controller();
  TakenNames& taken = pass.Own(&Memory::taken_names).taken;
  taken[what] = fmt::format("{} belongs to {}, and the job needs an object of this name: delete it, or rename the job.",
                            what, owner ? owner->kind + " " + owner->name : "no controller");
  pass.Warning(Reason::kNameTaken, taken[what]);
  const std::string others = taken.size() == 1 ? "" : fmt::format(" {} other names are taken too.", taken.size() - 1);
  SetCondition(pass, kNamesAvailableCondition, ConditionStatus::kFalse, Reason::kNameTaken,
               taken.begin()->second + others);
}

void ReportFreeName(Pass& pass, const std::string& kind, const kube::Key& key) {
  const Condition* const before = pass.report.conditions.Find(kNamesAvailableCondition);
  if (before == nullptr || before->status == ConditionStatus::kTrue) return;
  const std::string what = NameOf(kind, key);
  TakenNames& taken = pass.Own(&Memory::taken_names).taken;
  // A restarted operator knows only the condition.
  const bool was_taken = taken.erase(what) > 0 || before->message.starts_with(what + " ");
  if (!was_taken) return;
  if (taken.empty()) {
    SetCondition(pass, kNamesAvailableCondition, ConditionStatus::kTrue, Reason::kNamesFree,
                 "The job has every object that it needs.");
  } else {
    SetCondition(pass, kNamesAvailableCondition, ConditionStatus::kFalse, Reason::kNameTaken, taken.begin()->second);
  }
}

}  // namespace medley::ops::lifecycle
