#include "operator/lifecycle/actions.h"

#include <fmt/core.h>

#include "operator/lifecycle/effects.h"

namespace medley::ops::lifecycle {
namespace {

struct Describer {
  std::string operator()(const ReadPools&) const { return "read pools"; }
  std::string operator()(const ReadPlan&) const { return "read plan"; }
  std::string operator()(const ReadProfiles&) const { return "read profiles"; }
  std::string operator()(const GetObject& a) const { return fmt::format("get {} {}", a.resource.kind, a.key.name); }
  std::string operator()(const ReadLog& a) const { return "read log of " + a.pod.name; }
  std::string operator()(const TakeTurn&) const { return "take turn"; }
  std::string operator()(const ReserveUnits& a) const {
    if (a.slots.empty()) return "release units";
    return fmt::format("reserve {} units{}", a.slots.size(), a.is_stored ? " of the stored plan" : "");
  }
  std::string operator()(const EnsureObject& a) const {
    return fmt::format("ensure {} {}", a.resource.kind, a.object.key().name);
  }
  std::string operator()(const CreateObject& a) const {
    return fmt::format("create {} {}", a.resource.kind, a.object.key().name);
  }
  std::string operator()(const ApplyObject& a) const {
    return fmt::format("apply {} {}", a.resource.kind, a.object.key().name);
  }
  std::string operator()(const DeleteObject& a) const {
    return fmt::format("delete {} {}", a.resource.kind, a.key.name);
  }
  std::string operator()(const PatchJob& a) const {
    return a.subresource.empty() ? "patch job" : "patch " + a.subresource;
  }
  std::string operator()(const CreatePods& a) const {
    std::string names;
    for (const kube::Object& pod : a.pods) names += (names.empty() ? "" : ", ") + pod.key().name;
    return "create pods " + names;
  }
  std::string operator()(const DeletePods& a) const {
    std::string names;
    for (const DeletePods::Target& pod : a.pods) names += (names.empty() ? "" : ", ") + pod.key.name;
    return "delete pods " + names;
  }
  std::string operator()(const SavePlan&) const { return "save plan"; }
  std::string operator()(const Connect& a) const { return "connect to " + a.connection.address; }
  std::string operator()(const SendPlan& a) const { return fmt::format("send plan {}", a.plan.plan.generation); }
  std::string operator()(const SuspendTraining&) const { return "suspend training"; }
  std::string operator()(const DrainMembers& a) const {
    std::string names;
    for (const std::string& member : a.members) names += (names.empty() ? "" : ", ") + member;
    return "drain members " + names;
  }
  std::string operator()(const AskForPlan&) const { return "ask for a plan"; }
};

}  // namespace

// Compiled here once: each of them is code for every type that the variant may hold.
Action::Action(const Action& other) = default;
Action::Action(Action&& other) noexcept = default;
Action& Action::operator=(const Action& other) = default;
Action& Action::operator=(Action&& other) noexcept = default;
Action::~Action() = default;

Answer::Answer(const Answer& other) = default;
Answer::Answer(Answer&& other) noexcept = default;
Answer& Answer::operator=(const Answer& other) = default;
Answer& Answer::operator=(Answer&& other) noexcept = default;
Answer::~Answer() = default;

Effect::Effect(const Effect& other) = default;
Effect::Effect(Effect&& other) noexcept = default;
Effect& Effect::operator=(const Effect& other) = default;
Effect& Effect::operator=(Effect&& other) noexcept = default;
Effect::~Effect() = default;

std::string Describe(const Action& action) { return std::visit(Describer(), action); }

bool IsRead(const Action& action) {
  return std::holds_alternative<ReadPools>(action) || std::holds_alternative<ReadPlan>(action) ||
         std::holds_alternative<ReadProfiles>(action) || std::holds_alternative<GetObject>(action) ||
         std::holds_alternative<ReadLog>(action) || std::holds_alternative<TakeTurn>(action) ||
         std::holds_alternative<ReserveUnits>(action) || std::holds_alternative<Connect>(action);
}

}  // namespace medley::ops::lifecycle
