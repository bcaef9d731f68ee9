#include "worker/model/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"

namespace medley::worker {
namespace {

using ::testing::HasSubstr;

model::JobSpec Job(const std::string& name) {
  model::JobSpec job;
  job.model.name = name;
  job.model.embedding_dim = 10;
  job.model.embedding_rows = 1000;
  job.model.hidden = {400, 200};
  job.data.train = {"file:///x.csv", "csv"};
  job.data.schema = {.label_column = 0, .categorical = {1, 2, 3}, .numeric = {4, 5}};
  return job;
}

TEST(GraphTest, CtrDnnIsEmbeddingLayersAndLoss) {
  const Graph graph = *BuildGraph(Job("ctrdnn"));
  const model::Model model = graph.ToModel();
  ASSERT_EQ(model.layers.size(), 5U);
  EXPECT_EQ(model.name, "ctrdnn");
  EXPECT_EQ(model.layers[0].kind, "EMBEDDING");
  EXPECT_TRUE(model.layers[0].sparse);
  EXPECT_EQ(model.layers[0].weight_bytes, 4 * 1000 * 10);
  EXPECT_EQ(model.layers[0].output_bytes, 4 * (3 * 10 + 2));
  EXPECT_EQ(model.layers[1].input_bytes, 4 * 32);
  EXPECT_EQ(model.layers[1].weight_bytes, 4 * (32 * 400 + 400));
  EXPECT_EQ(model.layers[3].name, "fc_out");
  EXPECT_EQ(model.layers[3].output_bytes, 4);
  EXPECT_EQ(model.layers[4].kind, "LOSS");
  EXPECT_EQ(graph.Parameters(true).size(), 1U);
  EXPECT_EQ(graph.Parameters(false).size(), 6U);
}

TEST(GraphTest, BucketedNumbersAreFields) {
  model::JobSpec job = Job("ctrdnn");
  job.data.schema.numeric_buckets = 8;
  EXPECT_EQ((*BuildGraph(job)).operations[0].output_width, 5 * 10 + 2);
}

TEST(GraphTest, MlpReadsNumbersOnly) {
  const Graph graph = *BuildGraph(Job("mlp"));
  EXPECT_TRUE(graph.operations[0].reads_numerics);
  EXPECT_EQ(graph.operations[0].parameters[0].rows, 2);
  EXPECT_TRUE(graph.Parameters(true).empty());
}

TEST(GraphTest, LogisticSumsItsRows) {
  const Graph graph = *BuildGraph(Job("logistic"));
  ASSERT_EQ(graph.operations.size(), 3U);
  EXPECT_EQ(graph.operations[0].output_width, 1 + 2);
  EXPECT_TRUE(graph.operations[1].pass_first);
}

TEST(GraphTest, RefusesWhatDoesNotFit) {
  model::JobSpec job = Job("mlp");
  job.data.schema.numeric.clear();
  const absl::StatusOr<Graph> graph = BuildGraph(job);
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(base::Message(graph.status()), HasSubstr("numeric"));
}

}  // namespace
}  // namespace medley::worker
