#include "worker/model/graph.h"
#include "common/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "worker/model/fit_graph.h"

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

TEST(GraphTest, ResidualAddsEveryTwoHiddenLayers) {
  model::JobSpec job = Job("residual");
  job.model.hidden = {8, 4, 8, 5, 8, 8, 9, 9};
  const Graph graph = *BuildGraph(job);
  const model::Model model = graph.ToModel();
  std::string names;
  for (const model::Layer& layer : model.layers) names += layer.name + " ";
  EXPECT_EQ(names, "embedding fc1 fc2 fc3 add3 fc4 fc5 add5 fc6 fc7 fc8 fc_out loss ");
  EXPECT_EQ(model.layers[4].kind, "ADD");
  EXPECT_THAT(model.layers[4].inputs, ::testing::ElementsAre(1, 3));
  EXPECT_THAT(model.layers[7].inputs, ::testing::ElementsAre(4, 6)) << "the sum goes on";
  EXPECT_TRUE(model.layers[5].inputs.empty()) << "of the layer before";
  EXPECT_EQ(model.layers[4].input_bytes, 2 * 4 * 8);
  EXPECT_EQ(model.layers[4].output_bytes, 4 * 8);
}

TEST(GraphTest, ResidualWithoutIdsReadsNumbers) {
  model::JobSpec job = Job("residual");
  job.model.hidden = {8, 4, 8};
  job.data.schema.categorical.clear();
  const Graph graph = *BuildGraph(job);
  EXPECT_TRUE(graph.operations[0].reads_numerics);
  EXPECT_EQ(graph.operations[0].parameters[0].rows, 2);
  EXPECT_EQ(graph.operations[3].name, "add3");
}

TEST(GraphTest, ResidualNeedsAConnection) {
  model::JobSpec job = Job("residual");
  for (const std::vector<int>& hidden : {std::vector<int>{8}, {8, 8}, {8, 4, 9, 8}}) {
    job.model.hidden = hidden;
    EXPECT_THAT(base::Message(BuildGraph(job).status()), HasSubstr("no two of these are equally wide"));
  }
}

TEST(GraphTest, TwoTowersShareTheFields) {
  const Graph graph = *BuildGraph(Job("two-tower"));
  const model::Model model = graph.ToModel();
  std::string names;
  for (const model::Layer& layer : model.layers) names += layer.name + " ";
  EXPECT_EQ(names, "embedding_1 fc1_1 fc1_2 embedding_2 fc2_1 fc2_2 product fc_out loss ");
  EXPECT_EQ(graph.operations[0].parameters[0].fields, 2);
  EXPECT_EQ(graph.operations[0].output_width, 20);
  EXPECT_EQ(graph.operations[3].parameters[0].first_field, 2);
  EXPECT_EQ(graph.operations[3].parameters[0].fields, 1);
  EXPECT_EQ(graph.operations[3].output_width, 10 + 2) << "with the numbers";
  EXPECT_THAT(model.layers[3].inputs, ::testing::ElementsAre(-1)) << "the batch";
  EXPECT_THAT(model.layers[6].inputs, ::testing::ElementsAre(2, 5));
  EXPECT_EQ(model.layers[6].kind, "MULTIPLY");
  EXPECT_EQ(model.layers[3].input_bytes, 8 + 4 * 2);
}

TEST(GraphTest, TwoTowersNeedFieldsForEach) {
  model::JobSpec job = Job("two-tower");
  job.data.schema.categorical = {1};
  EXPECT_THAT(base::Message(BuildGraph(job).status()), HasSubstr("each tower has its own"));
  job.data.schema.numeric_buckets = 4;
  EXPECT_TRUE(BuildGraph(job).ok()) << "of bucketed numbers too";
}

TEST(GraphTest, LogisticSumsItsRows) {
  const Graph graph = *BuildGraph(Job("logistic"));
  ASSERT_EQ(graph.operations.size(), 3U);
  EXPECT_EQ(graph.operations[0].output_width, 1 + 2);
  EXPECT_TRUE(graph.operations[1].pass_first);
}

TEST(GraphTest, TheTaskDecidesTheOutputsAndTheLoss) {
  model::JobSpec job = Job("ctrdnn");
  EXPECT_EQ((*BuildGraph(job)).Outputs(), 1);
  EXPECT_EQ((*BuildGraph(job)).operations.back().loss, LossKind::kLogistic);
  job.data.schema.task = model::Task::kRegression;
  EXPECT_EQ((*BuildGraph(job)).Outputs(), 1);
  EXPECT_EQ((*BuildGraph(job)).operations.back().loss, LossKind::kSquared);
  job.model.loss = "mae";
  EXPECT_EQ((*BuildGraph(job)).operations.back().loss, LossKind::kAbsolute);
  job.model.loss.clear();
  job.data.schema.task = model::Task::kMultiClass;
  EXPECT_EQ((*BuildGraph(job)).Outputs(), kUnknownClasses);
  EXPECT_EQ((*BuildGraph(job, 7)).Outputs(), 7);
  EXPECT_EQ((*BuildGraph(job, 7)).operations.back().loss, LossKind::kSoftmax);
  job.data.schema.label_classes = {"a", "b", "c"};
  EXPECT_EQ((*BuildGraph(job)).Outputs(), 3);
  EXPECT_EQ((*BuildGraph(job)).ToModel().layers[3].output_bytes, 4 * 3);
  job.model.name = "logistic";
  EXPECT_EQ((*BuildGraph(job)).operations[0].output_width, 3 + 2) << "a sum for each class";
  job = Job("mlp");
  job.data.schema.task = model::Task::kMultiLabel;
  job.data.schema.label_column = -1;
  job.data.schema.label_columns = {0, 9};
  EXPECT_EQ((*BuildGraph(job)).Outputs(), 2);
  EXPECT_EQ((*BuildGraph(job)).shape.labels, 2);
}

std::shared_ptr<const Dataset> Rows(std::vector<float> labels) {
  Batch rows{.shape = {3, 2}, .samples = static_cast<int>(labels.size())};
  rows.labels = std::move(labels);
  return Dataset::FromBatch(std::move(rows));
}

TEST(GraphTest, TheDataMustBeRowsOfStoredTables) {
  Graph graph;
  graph.operations.resize(1);
  graph.operations[0].parameters = {{.name = "emb.weight",
                                     .rows = 10,
                                     .columns = 2,
                                     .sparse = true,
                                     .initializer = Initializer::kStored,
                                     .first_field = 1,
                                     .fields = 2}};
  const auto check = [&](std::vector<int32_t> ids) {
    Batch rows{.shape = {3, 0}, .samples = 2, .ids = std::move(ids), .labels = {0, 1}};
    return base::Message(CheckRows(graph, *Dataset::FromBatch(std::move(rows))));
  };
  EXPECT_EQ(check({99, 0, 9, -5, 5, 3}), "") << "the first number is not the table's";
  EXPECT_EQ(check({0, 0, 9, 0, 10, 3}),
            "sample 2 of the data has the number 10 as a row of 'emb.weight', which has the rows 0 to 9");
  EXPECT_THAT(check({0, 0, -1, 0, 0, 3}), ::testing::HasSubstr("sample 1 of the data has the number -1"));
  graph.operations[0].parameters[0].initializer = Initializer::kUniform;
  EXPECT_EQ(check({0, 0, 9, 0, 10, 3}), "") << "numbers of other models are hashed into their tables";
}

TEST(GraphTest, BalancedWeightsMakeClassesEqual) {
  model::JobSpec job = Job("ctrdnn");
  job.training.class_weights = {.balanced = true};
  const Graph graph = *FitGraph(job, *Rows({0, 0, 1, 0}));
  EXPECT_THAT(graph.operations.back().class_weights, ::testing::ElementsAre(4 / 6.0F, 2));
  job.data.schema.task = model::Task::kMultiClass;
  job.data.schema.label_classes = {"a", "b", "never", "c"};
  const auto data = Rows({0, 0, 1, 3});
  EXPECT_THAT((*FitGraph(job, *data)).operations.back().class_weights,
              ::testing::ElementsAre(4 / 6.0F, 4 / 3.0F, 1, 4 / 3.0F));
}

TEST(GraphTest, WeightsAreByTheNameOfTheClass) {
  model::JobSpec job = Job("ctrdnn");
  job.training.class_weights = {.weights = {{"1", 5}}};
  EXPECT_THAT((*FitGraph(job, *Rows({0, 1}))).operations.back().class_weights, ::testing::ElementsAre(1, 5));
  EXPECT_TRUE((*FitGraph(Job("ctrdnn"), *Rows({0, 1}))).operations.back().class_weights.empty());
}

TEST(GraphTest, TheTrainingDataTellTheClasses) {
  model::JobSpec job = Job("ctrdnn");
  job.data.schema.task = model::Task::kMultiClass;
  job.training.class_weights = {.weights = {{"c", 2}, {"green", 5}}};
  Batch rows{.shape = {3, 2}, .samples = 2};
  rows.labels = {0, 1};
  const auto data = Dataset::FromBatch(std::move(rows), {.columns = {}, .label = {.classes = {"a", "b", "c"}}});
  EXPECT_EQ(
      base::Message(FitGraph(job, *data).status()),
      "spec.training.classWeights.weights: 'green' is no class of the training data, which have 3 classes: a, b, c");
  job.training.class_weights->weights.erase("green");
  EXPECT_THAT((*FitGraph(job, *data)).operations.back().class_weights, ::testing::ElementsAre(1, 1, 2));
  EXPECT_EQ((*FitGraph(job, *data)).Outputs(), 3);
  job.model.name.clear();
  job.model.layers = {{"e", "Embedding", 4, ""}, {"c", "FullyConnected", 4, ""}, {"l", "Loss", 0, ""}};
  EXPECT_EQ(base::Message(FitGraph(job, *data).status()),
            "spec.model.layers: the layer before the Loss has out 4, but the training data have 3 classes");
}

}  // namespace
}  // namespace medley::worker
