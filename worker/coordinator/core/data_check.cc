#include "worker/coordinator/core/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "worker/coordinator/core/state.h"

namespace medley::worker::data_check {
namespace {

std::string Differs(const char* which, const std::string& member, const std::string& data, const std::string& read,
                    const std::string& right) {
  return fmt::format(
      "the {} data has changed since the job began: {} read {} with the digest {}, the job uses the data "
      "with the digest {}; restore the data, or submit a new job for the changed data",
      which, member, data.empty() ? "them" : data, read, right);
}

}  // namespace

WrongMembers WithOtherPrograms(const GenerationInfo& generation) {
  std::map<std::string, int> trainers;  // by program
  for (const auto& [name, member] : generation.members) {
    if (!member.program.empty()) ++trainers[member.program];
  }
  if (trainers.size() < 2) return {};
  const auto right = std::max_element(trainers.begin(), trainers.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  WrongMembers wrong;
  for (const auto& [name, member] : generation.members) {
    if (member.program.empty() || member.program == right->first) continue;
    wrong.emplace_back(name, fmt::format("{} compiled the plan to program {}, {} trainers to {}: the members run "
                                         "different builds of medley-worker",
                                         name, member.program, right->second, right->first));
  }
  return wrong;
}

void AddBadRows(DataState& own, int64_t rows) { own.bad_rows = std::max(own.bad_rows, rows); }

TrainingData CheckTraining(DataState& own, const CoreState& view) {
  const GenerationInfo& next = *view.generations.next;
  std::string right = own.train_digest;
  WrongMembers wrong;
  bool some_right = false;
  for (const job::v1::Peer& peer : next.peers) {
    const std::string& name = peer.slot().member();
    const std::string& read = next.members.at(name).data_digest;
    if (read.empty()) continue;  // a parameter server, or a trainer without data
    if (right.empty()) right = read;
    some_right |= read == right;
    if (read != right) wrong.emplace_back(name, Differs("training", name, view.options.train_data, read, right));
  }
  if (wrong.empty()) own.train_digest = right;  // journaled when the generation is in force
  return {std::move(wrong), !view.generations.active && !some_right};
}

std::optional<std::string> CheckEvaluated(DataState& own, const CoreState& view, const std::string& member,
                                          const std::string& digest) {
  if (digest.empty()) return std::nullopt;
  const bool validation = view.evaluation.pending->data == job::v1::EVALUATION_DATA_VALIDATION;
  std::string& right = validation ? own.validation_digest : own.test_digest;
  if (right.empty()) right = digest;
  if (digest == right) return std::nullopt;
  return validation ? Differs("validation", member, view.options.validation_data, digest, right)
                    : Differs("test", member, view.options.test_data, digest, right);
}

void Restore(DataState& own, const job::v1::CoordinatorState& journal) {
  own.bad_rows = journal.bad_rows();
  own.train_digest = journal.train_digest();
  own.test_digest = journal.test_digest();
  own.validation_digest = journal.validation_digest();
}

}  // namespace medley::worker::data_check
