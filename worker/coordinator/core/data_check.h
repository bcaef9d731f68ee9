// All members must read the same data, from the job's start to its end (docs/adr/0020-true-files.md), and compile the
// plan to the same program.
//
// Data in: what members have read and compiled. It decides who cannot take part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct CoreState;

struct DataState {
  int64_t bad_rows = 0;
  std::string train_digest;  // of the data that the job trains on; empty: not known yet
  std::string test_digest;
  std::string validation_digest;
};

namespace data_check {

// Members that cannot take part, and a sentence for each.
using WrongMembers = std::vector<std::pair<std::string, std::string>>;

// The trainers of a generation that have compiled the plan to another program than most: builds that differ would wait
// for messages that nobody sends.
WrongMembers WithOtherPrograms(const GenerationInfo& generation);

void AddBadRows(DataState& own, int64_t rows);
// Those of the generation that is being prepared that have read other training data. Of the first generation, the first
// trainer's data are right. Later, those of the journal are.
struct TrainingData {
  WrongMembers wrong;
  bool hopeless = false;  // nobody has read the right data: the job fails
};
TrainingData CheckTraining(DataState& own, const CoreState& view);
// Likewise for the data of an evaluation. Returns why `member` cannot take part; nullopt: it can.
std::optional<std::string> CheckEvaluated(DataState& own, const CoreState& view, const std::string& member,
                                          const std::string& digest);
void Restore(DataState& own, const job::v1::CoordinatorState& journal);

}  // namespace data_check
}  // namespace medley::worker
