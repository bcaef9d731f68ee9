#include "worker/export/initial_weights.h"

#include <gmock/gmock.h>

#include <fstream>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/checkpoint/writer.h"
#include "worker/export/write_export.h"
#include "worker/params/initialize.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
constexpr uint64_t kFirstSeed = 9;

class InitialWeightsTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *base::MakeTempDir("initial-weights");
    job_.model.name = "ctrdnn";
    job_.model.embedding_dim = 4;
    job_.model.embedding_rows = 20;
    job_.model.hidden = {8};
    job_.data.train = {"file:///data/x.csv", "csv"};
    job_.data.schema = {.label_column = 2, .categorical = {0}, .numeric = {1}};
    Export();
    job_.model.initial_from = (root_ / "export").string();
  }
  void TearDown() override { base::RemoveTempDir(root_); }

  // A model whose dense weights are 0.5 and whose row 3 has the weights 7.
  void Export() const {
    const Volume volume(root_);
    ExportRequest request;
    request.model.graph = *BuildGraph(job_);
    request.model.schema = job_.data.schema;
    request.model.embedding_rows = 20;
    request.model.transform.columns = {{.mean = 1, .inverse_deviation = 2}};
    request.card.spec = job_;
    request.seed = kFirstSeed;
    request.folder = "export";
    request.temporary_name = "export.unfinished";
    auto dense = CheckpointWriter::Create(volume, "step-00000042-e1", {{}, 1, 42});
    ASSERT_THAT(dense, IsOk());
    for (const ExportedTensor& tensor : TensorsOf(request.model.graph)) {
      if (tensor.spec.sparse) continue;
      const std::vector<float> weights(static_cast<size_t>(tensor.spec.Size()), 0.5F);
      ASSERT_THAT((*dense)->AddDense(tensor.spec.operation, tensor.spec.name, weights, {}), IsOk());
    }
    ASSERT_THAT((*dense)->AddRows(Table(request.model.graph).operation, 4, std::vector<uint64_t>{3},
                                  std::vector<float>(4, 7.0F)),
                IsOk());
    auto entry = (*dense)->Finish();
    ASSERT_THAT(entry, IsOk());
    request.checkpoint.generation = 1;
    request.checkpoint.step = 42;
    request.checkpoint.folder = "step-00000042-e1";
    request.checkpoint.files = {*entry};
    ASSERT_THAT(WriteExport(volume, request, [] { return absl::OkStatus(); }), IsOk());
  }
  static ParameterSpec Table(const Graph& graph) { return graph.Parameters(true).front(); }
  absl::Status Use(const model::JobSpec& job, InitialParts parts = InitialParts::kAll,
                   const std::vector<std::string>& classes = {}) const {
    Graph graph = *BuildGraph(job, static_cast<int>(classes.size()));
    return UseInitialWeights(job, "", classes, parts, graph);
  }
  static std::vector<float> Row(const ParameterSpec& table, uint64_t seed, int64_t row) {
    std::vector<float> values(static_cast<size_t>(table.columns));
    InitializeRow(table, seed, row, values);
    return values;
  }

  std::filesystem::path root_;
  model::JobSpec job_;
};

TEST_F(InitialWeightsTest, EveryParameterBeginsAsTheExportHasIt) {
  Graph graph = *BuildGraph(job_);
  const ParameterSpec fresh = Table(graph);
  ASSERT_THAT(UseInitialWeights(job_, "", {}, InitialParts::kAll, graph), IsOk());
  for (const ParameterSpec& spec : graph.Parameters(false)) {
    std::vector<float> values(static_cast<size_t>(spec.Size()));
    Initialize(spec, 77, values);
    EXPECT_THAT(values, Each(0.5F)) << spec.name;
  }
  EXPECT_THAT(Row(Table(graph), 77, 3), Each(7.0F));
  // Rows that the first job has not used are those with which it would have begun: fresh.
  EXPECT_EQ(Row(Table(graph), 77, 5), Row(fresh, kFirstSeed, 5));
}

TEST_F(InitialWeightsTest, ServersTakeTheTablesOnly) {
  Graph graph = *BuildGraph(job_);
  ASSERT_THAT(UseInitialWeights(job_, "", {}, InitialParts::kTables, graph), IsOk());
  EXPECT_NE(Table(graph).stored_rows.bytes, nullptr);
  for (const ParameterSpec& spec : graph.Parameters(false)) EXPECT_EQ(spec.stored_rows.bytes, nullptr);
}

TEST_F(InitialWeightsTest, RateBatchSeedAndDataMayDiffer) {
  model::JobSpec other = job_;
  other.training.learning_rate = 0.5;
  other.training.batch_size = 7;
  other.training.seed = 3;
  other.training.optimizer = "adam";
  other.data.train = {"file:///data/new.csv", "csv"};
  other.model.initial_from = "file://" + (root_ / "export").string();
  EXPECT_THAT(Use(other), IsOk());
  other.model.initial_from.clear();
  EXPECT_THAT(Use(other), IsOk());
}

TEST_F(InitialWeightsTest, ARefusalNamesFieldsWithBothValues) {
  const auto refusal = [&](auto change) {
    model::JobSpec other = job_;
    change(other);
    return Use(other);
  };
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.model.hidden = {16}; }),
              StatusIs(kRefused, AllOf(HasSubstr("spec.model.initialFrom: cannot begin with the weights of "),
                                       HasSubstr("fc1.bias is [8] in the export and [16] in this job"))));
  EXPECT_THAT(
      refusal([](model::JobSpec& job) { job.model.embedding_rows = 30; }),
      StatusIs(kRefused, HasSubstr("spec.model.parameters.embeddingRows is 20 in the export and 30 in this job")));
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.model.embedding_dim = 2; }),
              StatusIs(kRefused, HasSubstr(".table is [20,4] in the export and [20,2] in this job")));
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.data.schema.numeric = {3}; }),
              StatusIs(kRefused, HasSubstr("spec.data.schema.numeric[0] is 1 in the export and 3 in this job")));
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.data.schema.numeric_buckets = 4; }),
              StatusIs(kRefused, HasSubstr("spec.data.schema.numericBuckets is not set in the export and 4")));
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.data.schema.task = model::Task::kRegression; }),
              StatusIs(kRefused, HasSubstr("spec.model.task is \"binary\" in the export and \"regression\"")));
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.data.schema.categorical = {4}; }),
              StatusIs(kRefused, HasSubstr("spec.data.schema.categorical[0] is 0 in the export and 4 in this job")));
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.data.schema.label_positive = "no"; }),
              StatusIs(kRefused, HasSubstr("label.positive is not set in the export and \"no\" in this job")))
      << "the same weights would mean the opposite";
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.data.schema.parts = {model::ColumnPart::kTime}; }),
              StatusIs(kRefused, HasSubstr("spec.data.schema.dates is not set in the export and [1] in this job")));
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.model.name = "mlp"; }),
              StatusIs(kRefused, HasSubstr("spec.model.name is \"ctrdnn\" in the export and \"mlp\" in this job")));
}

TEST_F(InitialWeightsTest, ARefusalNamesWhatOnlyTheMeaningOfNumbersShows) {
  const auto refusal = [&](auto change) {
    model::JobSpec other = job_;
    change(other);
    return Use(other);
  };
  job_.model.name.clear();
  job_.model.initial_from.clear();
  job_.model.layers = {{.name = "table", .kind = "Embedding", .out = 4},
                       {.name = "hidden", .kind = "FullyConnected", .out = 8, .activation = "relu"},
                       {.name = "out", .kind = "FullyConnected", .out = 1},
                       {.name = "loss", .kind = "Loss"}};
  job_.data.schema.parts = {model::ColumnPart::kTime};
  job_.data.schema.task = model::Task::kRegression;
  base::RemoveTempDir(root_ / "export");
  base::RemoveTempDir(root_ / "step-00000042-e1");
  Export();
  job_.model.initial_from = (root_ / "export").string();
  EXPECT_THAT(Use(job_), IsOk());
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.model.layers[1].activation = "tanh"; }),
              StatusIs(kRefused, HasSubstr("the activation of layer hidden is \"relu\" in the export and \"tanh\"")));
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.data.schema.day_first = true; }),
              StatusIs(kRefused, HasSubstr("spec.data.schema.dayFirst is false in the export and true in this job")));
  EXPECT_THAT(refusal([](model::JobSpec& job) { job.data.schema.label_log = true; }),
              StatusIs(kRefused, HasSubstr("label.transform is not set in the export and \"Log1p\" in this job")));
}

TEST_F(InitialWeightsTest, DamagedExportsAreRefused) {
  const auto weights = root_ / "export" / kWeightsFile;
  const std::string good = *base::ReadFile(weights);
  for (const std::string& bad : {std::string(), good.substr(0, 9), good.substr(0, good.size() - 1),
                                 std::string(8, '\xff') + good.substr(8), std::string("\2\0\0\0\0\0\0\0[]", 10)}) {
    ASSERT_THAT(base::WriteFileAtomic(weights, bad), IsOk());
    EXPECT_THAT(Use(job_), StatusIs(kRefused)) << bad.size();
  }
  std::filesystem::remove(weights);
  EXPECT_THAT(Use(job_), StatusIs(kRefused, HasSubstr("model.safetensors")));
  std::filesystem::remove(root_ / "export" / kModelFile);
  EXPECT_THAT(Use(job_), StatusIs(kRefused, HasSubstr("the folder has no model.json")));
  job_.model.initial_from = "/no/such/folder";
  EXPECT_THAT(Use(job_), StatusIs(kRefused, HasSubstr("/no/such/folder")));
}

}  // namespace
}  // namespace medley::worker
