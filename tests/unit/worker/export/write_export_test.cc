#include "worker/export/write_export.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/checkpoint/writer.h"
#include "worker/export/onnx.h"
#include "worker/export/read_export.h"
#include "worker/params/initialize.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::Each;
using testing::HasSubstr;

constexpr uint64_t kSeed = 9;
constexpr int kDim = 4;

class WriteExportTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *base::MakeTempDir("export-test");
    model::JobSpec job;
    job.model.name = "ctrdnn";
    job.model.embedding_dim = kDim;
    job.model.embedding_rows = 20;
    job.model.hidden = {8};
    job.data.train = {"file:///data/x.csv", "csv"};
    job.data.schema = {.label_column = 2, .categorical = {0}, .numeric = {1}};
    request_.model.graph = *BuildGraph(job);
    request_.model.schema = job.data.schema;
    request_.model.embedding_rows = 20;
    request_.model.transform.columns = {{.mean = 1, .inverse_deviation = 2}};
    request_.card.spec = job;
    request_.card.origin = {"adult", "uid-1", 42, "0.1"};
    request_.card.rows = 1000;
    request_.card.metrics = {{"auc", 0.91234}, {"test_samples", 16281}};
    request_.card.plan = {"stage 0 (embedding): 2 of pool old-spot"};
    request_.seed = kSeed;
    request_.folder = "export";
    request_.temporary_name = "export-i.unfinished";
  }
  void TearDown() override { base::RemoveTempDir(root_); }

  // Writes a checkpoint in which every dense weight is 0.5, row 3 has the weights 7 and row 5 the weights 8.
  void WriteCheckpoint(const std::string& without = "") {
    const Volume volume(root_);
    auto dense = CheckpointWriter::Create(volume, "step-00000042-e1", {{}, 1, 42});
    ASSERT_THAT(dense, IsOk());
    for (const ExportedTensor& tensor : TensorsOf(request_.model.graph)) {
      if (tensor.spec.sparse || tensor.name == without) continue;
      const std::vector<float> weights(static_cast<size_t>(tensor.spec.Size()), 0.5F);
      ASSERT_THAT((*dense)->AddDense(tensor.spec.operation, tensor.spec.name, weights, {}), IsOk());
    }
    auto rows = CheckpointWriter::Create(volume, "step-00000042-e1", {{}, 1, 42, CheckpointFileKind::kRows});
    ASSERT_THAT(rows, IsOk());
    std::vector<float> values(size_t{2} * 2 * kDim, -1);  // weights, then optimizer state
    std::fill_n(values.begin(), kDim, 7.0F);
    std::fill_n(values.begin() + 2 * kDim, kDim, 8.0F);
    ASSERT_THAT((*rows)->AddRows(0, 2 * kDim, std::vector<uint64_t>{3, 5}, values), IsOk());
    request_.checkpoint.generation = 1;
    request_.checkpoint.step = 42;
    request_.checkpoint.folder = "step-00000042-e1";
    request_.checkpoint.files = {*(*dense)->Finish(), *(*rows)->Finish()};
  }
  absl::Status Write() {
    return WriteExport(Volume(root_), request_, [] { return absl::OkStatus(); });
  }
  std::string Text(const std::string& file) { return base::ReadFile(root_ / "export" / file).value_or(""); }

  std::filesystem::path root_;
  ExportRequest request_;
};

TEST_F(WriteExportTest, HasTheWeightsOfTheCheckpointAndTheInitialOnesOfRowsThatItLacks) {
  WriteCheckpoint();
  ASSERT_THAT(Write(), IsOk());
  const auto read = ReadExport(root_ / "export");
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(read->weights.at("fc1.weight"), Each(0.5F));
  EXPECT_THAT(read->weights.at("fc_out.bias"), Each(0.5F));
  const std::vector<float>& table = read->weights.at("embedding.table");
  std::vector<float> expected(20 * kDim);
  Initialize(request_.model.graph.operations[0].parameters[0], kSeed, expected);
  std::fill_n(expected.begin() + 3 * kDim, kDim, 7.0F);
  std::fill_n(expected.begin() + 5 * kDim, kDim, 8.0F);
  EXPECT_EQ(table, expected);
  const std::string npy = Text("numpy/embedding.table.npy");
  EXPECT_EQ(npy.substr(npy.size() - 20 * kDim * 4),
            std::string(reinterpret_cast<const char*>(expected.data()), 20 * kDim * 4));
}

TEST_F(WriteExportTest, TheCardSaysWhatTheModelIs) {
  WriteCheckpoint();
  ASSERT_THAT(Write(), IsOk());
  const std::string card = Text("README.md");
  for (const char* text : {"# adult", "file:///data/x.csv, 1000 rows", "| auc | 0.9123 |", "| test_samples | 16281 |",
                           "stage 0 (embedding): 2 of pool old-spot", "| embedding.table | 20 x 4 |"}) {
    EXPECT_THAT(card, HasSubstr(text));
  }
}

TEST_F(WriteExportTest, ReplacesAnEarlierExport) {
  WriteCheckpoint();
  std::filesystem::create_directories(root_ / "export");
  std::ofstream(root_ / "export" / "old") << "x";
  std::filesystem::create_directories(root_ / "export-i.unfinished");
  ASSERT_THAT(Write(), IsOk());
  EXPECT_FALSE(std::filesystem::exists(root_ / "export" / "old"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "export-i.unfinished"));
}

TEST_F(WriteExportTest, KeepsTheEarlierExportWhenItMayNotPublish) {
  WriteCheckpoint();
  ASSERT_THAT(Write(), IsOk());
  const std::string before = Text("model.json");
  request_.card.origin.job = "another";
  const absl::Status refused =
      WriteExport(Volume(root_), request_, [] { return base::Aborted("another coordinator leads"); });
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kAborted, HasSubstr("another coordinator leads")));
  EXPECT_EQ(Text("model.json"), before);
  EXPECT_FALSE(std::filesystem::exists(root_ / "export-i.unfinished"));
}

// A coordinator that was paused while another one led: that one has removed its unfinished folder and published.
TEST_F(WriteExportTest, AnExportOfAnotherProcessStaysWhenTheOwnFolderIsLost) {
  WriteCheckpoint();
  ASSERT_THAT(Write(), IsOk());
  const auto lose_folder = [&] {
    std::filesystem::rename(root_ / "export-i.unfinished", root_ / "lost");
    return absl::OkStatus();
  };
  EXPECT_THAT(WriteExport(Volume(root_), request_, lose_folder), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadExport(root_ / "export"), IsOk());
}

TEST_F(WriteExportTest, ACheckpointWithoutAParameterIsRefused) {
  WriteCheckpoint("fc1.bias");
  EXPECT_THAT(Write(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("lacks the parameter fc1.bias")));
  EXPECT_FALSE(std::filesystem::exists(root_ / "export"));
}

TEST_F(WriteExportTest, DamagedWeightsAreRefused) {
  WriteCheckpoint();
  ASSERT_THAT(Write(), IsOk());
  const std::filesystem::path file = root_ / "export" / "model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_THAT(ReadExport(root_ / "export"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model.safetensors: the file is truncated")));
  std::filesystem::resize_file(file, 4);
  EXPECT_THAT(ReadExport(root_ / "export"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("truncated")));
  EXPECT_THAT(ReadExport(root_), StatusIs(absl::StatusCode::kNotFound, HasSubstr("is not an exported model")));
}

TEST_F(WriteExportTest, OnnxNamesItsInputsAndLayers) {
  WriteCheckpoint();
  ASSERT_THAT(Write(), IsOk());
  const auto read = ReadExport(root_ / "export");
  ASSERT_THAT(read, IsOk());
  const auto bytes = ToOnnx(*read);
  ASSERT_THAT(bytes, IsOk());
  for (const char* text : {"Gather", "Concat", "Gemm", "Relu", "Sigmoid", "numerics", "fc1.weight", "probability"}) {
    EXPECT_NE(bytes->find(text), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace medley::worker
