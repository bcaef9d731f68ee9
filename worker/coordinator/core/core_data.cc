// CoordinatorCore: all members must read the same data, from the job's start to its end (docs/adr/0020-true-files.md).
#include <fmt/format.h>

#include <algorithm>

#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

std::string Differs(const char* which, const std::string& member, const std::string& data, const std::string& read,
                    const std::string& right) {
  return fmt::format(
      "the {} data has changed since the job began: {} read {} with the digest {}, the job uses the data "
      "with the digest {}; restore the data, or submit a new job for the changed data",
      which, member, data.empty() ? "them" : data, read, right);
}

}  // namespace

// Of the first generation, the first trainer's data are right. Later, those of the journal are. Returns false when
// state_.generations.next was given up or the job has failed.
bool CoordinatorCore::CheckTrainData(Instant now) {
  std::string right = state_.data.train_digest;
  std::vector<std::pair<std::string, std::string>> wrong;  // member, sentence
  bool some_right = false;
  for (const job::v1::Peer& peer : state_.generations.next->peers) {
    const std::string& name = peer.slot().member();
    const std::string& read = state_.generations.next->members.at(name).data_digest;
    if (read.empty()) continue;  // a parameter server, or a trainer without data
    if (right.empty()) right = read;
    some_right |= read == right;
    if (read != right) wrong.emplace_back(name, Differs("training", name, state_.options.train_data, read, right));
  }
  if (wrong.empty()) {
    state_.data.train_digest = right;  // journaled when the generation is in force
    return true;
  }
  if (!state_.generations.active && !some_right) {
    Fail(wrong.front().second, false, now);
    return false;
  }
  // The plan stays the wanted one: it becomes possible as soon as a new pod reads the right data.
  const auto& [first, sentence] = wrong.front();
  AbandonNext({job::v1::SWITCH_CAUSE_MEMBER_FAULT, sentence, first}, RecoveryBudget::Weight::kFault, now);
  if (over()) return false;
  for (const auto& [name, why] : wrong) {
    Log(true, "refused a member: " + why);
    ReleaseWithError(name, why);
  }
  return false;
}

// Likewise for the data of an evaluation. Returns false when the evaluation was given up.
bool CoordinatorCore::CheckTestData(const std::string& member, const std::string& read, Instant now) {
  if (read.empty()) return true;
  const bool validation = state_.evaluation.pending->data == job::v1::EVALUATION_DATA_VALIDATION;
  std::string& right = validation ? state_.data.validation_digest : state_.data.test_digest;
  if (right.empty()) right = read;
  if (read == right) return true;
  const std::string why = validation ? Differs("validation", member, state_.options.validation_data, read, right)
                                     : Differs("test", member, state_.options.test_data, read, right);
  Log(true, "refused a member: " + why);
  ReleaseWithError(member, why);
  state_.generations.active->members.erase(member);
  LoseHolder({job::v1::SWITCH_CAUSE_MEMBER_FAULT, why, member}, now);
  return false;
}

}  // namespace medley::worker
