// spec.training.precision: what is computed in bfloat16, where, and that models of Adult and MNIST are as good.
#include "worker/aten/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/status.h"
#include "common/model/job_spec.h"
#include "tests/unit/worker/aten/exported_sample.h"
#include "worker/aten/aten_block.h"
#include "worker/data/dataset.h"
#include "worker/params/optimizer_of.h"

namespace medley::worker::aten {
namespace {

TEST(PrecisionTest, IsWhatTheProcessorHas) {
  for (const bool has : {false, true}) {
    EXPECT_EQ(PrecisionOn(at::kCPU, Precision::kFloat32, has), Precision::kFloat32);
    EXPECT_EQ(PrecisionOn(at::kCPU, Precision::kTf32, has), Precision::kFloat32);
    EXPECT_EQ(PrecisionOn(at::kCUDA, Precision::kTf32, has), Precision::kTf32);
    EXPECT_EQ(PrecisionOn(at::kCUDA, Precision::kBfloat16, has), Precision::kBfloat16);
  }
  EXPECT_EQ(PrecisionOn(at::kCPU, Precision::kBfloat16, true), Precision::kBfloat16);
  EXPECT_EQ(PrecisionOn(at::kCPU, Precision::kBfloat16, false), Precision::kFloat32) << "it would be emulated";
}

TEST(PrecisionTest, ProductsAreInBfloat16WhileItHolds) {
  const at::Tensor a = at::rand({4, 4}), b = at::rand({4, 4});
  EXPECT_EQ(at::matmul(a, b).scalar_type(), at::kFloat);
  {
    const InPrecision precision(at::kCPU, Precision::kBfloat16);
    EXPECT_EQ(at::matmul(a, b).scalar_type(), at::kBFloat16);
    EXPECT_EQ(a.add(b).scalar_type(), at::kFloat) << "sums are not on PyTorch's list";
  }
  const InPrecision precision(at::kCPU, Precision::kFloat32);
  EXPECT_EQ(at::matmul(a, b).scalar_type(), at::kFloat);
}

struct Result {
  std::vector<float> outputs;  // of the test data
  int width = 1;               // of a sample
  std::vector<float> labels;
  std::vector<float> weights;  // of the model
};

// Trains the job's model on the first `rows` samples with the settings of the job.
Result Train(const model::JobSpec& job, const std::string& archive, int64_t rows, Precision precision) {
  Result out;
  auto program = exported::ReadArchive(archive);
  EXPECT_TRUE(program.ok()) << program.status();
  const auto graph = worker::ImportedGraph(job, std::make_shared<const exported::Program>(*std::move(program)));
  EXPECT_TRUE(graph.ok()) << graph.status();
  const LoadOptions load{.embedding_rows = job.model.embedding_rows};
  const auto train = Dataset::Load(job.data.train, job.data, nullptr, load);
  EXPECT_TRUE(train.ok()) << train.status();
  const auto test = Dataset::Load(*job.data.test, job.data, &(*train)->transform(), load);
  EXPECT_TRUE(test.ok()) << test.status();
  const Optimizer optimizer = *OptimizerOf(job.training);
  auto made = AtenBlock::Create(*graph, {0, static_cast<int>(graph->operations.size())},
                                {.optimizer = optimizer, .seed = 3, .precision = precision});
  EXPECT_TRUE(made.ok()) << made.status();
  AtenBlock& block = **made;
  EXPECT_TRUE(block.Tables().empty());
  const int count = job.training.batch_size;
  int64_t step = 0;
  Batch batch;
  std::vector<int64_t> chosen(static_cast<size_t>(count));
  rows = std::min(rows, (*train)->rows());
  for (int epoch = 0; epoch < job.training.epochs; ++epoch) {
    for (int64_t first = 0; first + count <= rows; first += count) {
      ++step;
      for (int64_t i = 0; i < count; ++i) chosen[static_cast<size_t>(i)] = (first + i) * 7919 % rows;
      (*train)->Gather(chosen, batch);
      block.BeginStep({.step = step, .version = step - 1, .global_samples = count});
      absl::Status status = block.Forward({}, batch.View(0, count), {}).status();
      if (status.ok()) status = block.Backward({}, {}).status();
      if (status.ok()) status = block.ApplyUpdate(optimizer.AtStep(step));
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) return out;
    }
  }
  chosen.resize(1000);
  for (int64_t first = 0; first + 1000 <= (*test)->rows(); first += 1000) {
    std::iota(chosen.begin(), chosen.end(), first);
    (*test)->Gather(chosen, batch);
    const auto found = block.Infer(batch.View(0, 1000), {});
    EXPECT_TRUE(found.ok()) << found.status();
    out.outputs.insert(out.outputs.end(), found->front().begin(), found->front().end());
    out.labels.insert(out.labels.end(), batch.labels.begin(), batch.labels.end());
  }
  out.width = static_cast<int>(out.outputs.size() / out.labels.size());
  for (const DenseParameter& parameter : block.Parameters()) {
    out.weights.insert(out.weights.end(), parameter.weights.begin(), parameter.weights.end());
  }
  return out;
}

// How often a sample with the label 1 has a larger output than one with 0.
double Auc(const Result& trained) {
  std::vector<size_t> order(trained.labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return trained.outputs[i]; });
  double negatives = 0, pairs = 0, positives = 0;
  for (const size_t i : order) {
    if (trained.labels[i] > 0) {
      pairs += negatives;
      ++positives;
    } else {
      ++negatives;
    }
  }
  return pairs / (positives * negatives);
}

double Accuracy(const Result& trained) {
  int right = 0;
  for (size_t i = 0; i < trained.labels.size(); ++i) {
    const auto begin = trained.outputs.begin() + static_cast<ptrdiff_t>(i) * trained.width;
    right +=
        std::max_element(begin, begin + trained.width) - begin == static_cast<ptrdiff_t>(trained.labels[i]) ? 1 : 0;
  }
  return right / static_cast<double>(trained.labels.size());
}

void ExpectAsGood(const char* what, const Result& exact, const Result& rounded, double (*quality)(const Result&),
                  double least) {
  const double of_exact = quality(exact), of_rounded = quality(rounded);
  std::printf("%s: float32 %.4f, bfloat16 %.4f%s\n", what, of_exact, of_rounded,
              ProcessorHasBfloat16() ? "" : " (this processor computes in float32)");
  EXPECT_GT(of_exact, least);
  EXPECT_GE(of_rounded, of_exact - 0.002);
  EXPECT_EQ(exact.weights != rounded.weights, ProcessorHasBfloat16()) << "the precision has an effect where it can";
  // Parameters are float32: not all of them are numbers of bfloat16, whose lower half is 0.
  EXPECT_TRUE(std::ranges::any_of(rounded.weights, [](float w) { return static_cast<float>(at::BFloat16(w)) != w; }));
}

TEST(PrecisionTest, AModelOfAdultIsAsGood) {
  const std::string root = std::string(std::getenv("MEDLEY_SOURCE_DIR"));
  model::JobSpec job;
  job.model.exported_uri = "file://" + Folder() + "adult.pt2";
  job.model.cut.depth = 2;
  job.model.embedding_rows = 512;
  job.data.train = {"file://" + root + "/examples/data/adult.train.csv", "csv"};
  job.data.test = {{"file://" + root + "/examples/data/adult.test.csv", "csv"}};
  job.data.schema = {.label_column = 14,
                     .label_positive = ">50K",
                     .categorical = {1, 3, 5, 6, 7, 8, 9, 13},
                     .numeric = {0, 2, 4, 10, 11, 12}};
  job.training.epochs = 4;
  job.training.batch_size = 512;
  job.training.optimizer = "adam";
  job.training.learning_rate = 0.005;
  job.training.clip_norm = 1e6;  // so that the embedding is a parameter as others are
  const auto trained = [&](Precision precision) { return Train(job, Folder() + "adult.pt2", 1 << 20, precision); };
  ExpectAsGood("Adult, AUC", trained(Precision::kFloat32), trained(Precision::kBfloat16), Auc, 0.88);
}

TEST(PrecisionTest, AModelOfMnistIsAsGood) {
  const std::string folder = std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/examples/lenet/";
  const auto job = model::ParseJobSpec(R"({"model": {"exported": {"uri": "file://)" + folder + R"(lenet.pt2"},
      "cut": {"depth": 1}, "task": "multiClass"},
    "data": {"train": {"format": "idx", "uri": "file://)" +
                                       folder + R"(train-images-idx3-ubyte.gz",
                       "labels": "file://)" +
                                       folder + R"(train-labels-idx1-ubyte.gz"},
             "test": {"format": "idx", "uri": "file://)" +
                                       folder + R"(t10k-images-idx3-ubyte.gz",
                      "labels": "file://)" +
                                       folder + R"(t10k-labels-idx1-ubyte.gz"},
             "inputs": [{"name": "image", "type": "float32", "shape": [1, 28, 28], "scale": 0.00392156862745098,
                         "mean": [0.1307], "std": [0.3081]}],
             "schema": {"label": {"classes": ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]}}},
    "training": {"epochs": 1, "batchSize": 128, "optimizer": {"name": "adam", "learningRate": 0.001}}})");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto trained = [&](Precision precision) { return Train(*job, folder + "lenet.pt2", 12'800, precision); };
  ExpectAsGood("MNIST, accuracy", trained(Precision::kFloat32), trained(Precision::kBfloat16), Accuracy, 0.94);
}

}  // namespace
}  // namespace medley::worker::aten
