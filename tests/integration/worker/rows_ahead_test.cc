// Trainers that ask parameter servers for rows a step ahead train the same model, to the bit, as those that wait; and a
// model that differs as little while servers come and members are killed.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/integration/worker/small_job.h"
#include "tests/integration/worker/train_job.h"

namespace medley::worker::rows_ahead_test {
namespace {

JobOptions CensusOptions(bool ahead) {
  JobOptions options;
  options.train = FirstRows("adult.train.csv", 12000);
  options.batch_size = 128;
  options.hidden = {32, 16};
  options.embedding_dim = 8;
  options.optimizer = "adam";
  options.learning_rate = 0.002;
  options.epochs = 2;
  options.environment = {std::string("MEDLEY_ROWS_AHEAD=") + (ahead ? "1" : "0")};
  return options;
}

JobShape Shape(int servers) {
  return {.stages = {{.first = 0, .end = 1, .units = 2}, {.first = 1, .end = 5}}, .servers = servers};
}

TEST(RowsAheadTest, LossesAndWeightsAreThoseOfTrainersThatWait) {
  const Outcome expected = Train(CensusOptions(false), Shape(2)), found = Train(CensusOptions(true), Shape(2));
  ASSERT_GT(found.losses.size(), 180U);
  EXPECT_EQ(found.losses, expected.losses);
  EXPECT_EQ(found.weights, expected.weights);
}

// A replica that comes back adds in another order, ahead or not: the last bits differ.
TEST(RowsAheadTest, TheyAreThoseAfterServersCameAndATrainerWasKilled) {
  constexpr double kMost = 1e-5;
  const JobShape more = Shape(3);
  const Outcome expected = Train(CensusOptions(false), Shape(2));
  for (const bool ahead : {false, true}) {
    const Outcome found = Train(CensusOptions(ahead), Shape(2), &more, /*kill=*/true);
    const double losses = LargestDifference(expected, found), weights = WeightDifference(expected, found);
    EXPECT_LE(losses, kMost) << (ahead ? "ahead" : "in time");
    EXPECT_LE(weights, kMost) << (ahead ? "ahead" : "in time");
    std::printf("%s: largest relative difference of %zu losses %.1e, of weights %.1e\n", ahead ? "ahead" : "in time",
                found.losses.size(), losses, weights);
  }
}

}  // namespace
}  // namespace medley::worker::rows_ahead_test
