// Models from PyTorch, predicted from an export's folder by the process without rights, against eager PyTorch
// (tests/data/exported/make_outputs.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/checkpoint/files.h"
#include "worker/export/onnx.h"
#include "worker/export/read_program.h"
#include "worker/export/tensor_files.h"
#include "worker/exported/archive.h"
#include "worker/model/imported_graph.h"
#include "worker/predict/arrays.h"
#include "worker/predict/lines.h"
#include "worker/predict/program_process.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr double kTolerance = 1e-6;

std::string Fixtures() { return std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/tests/data/exported/"; }

nlohmann::json ReadJson(const std::string& name) {
  std::ifstream file(Fixtures() + name + ".json");
  return nlohmann::json::parse(file);
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The export of a fixture, whose weights are `factor` times those of its archive.
class Export {
 public:
  Export(const std::string& name, const std::string& archive, model::SchemaSpec schema, float factor = 0.9F,
         const std::string& format = "npy")
      : folder_(*base::MakeTempDir("program-test")) {
    auto program = exported::ReadArchive(archive);
    EXPECT_THAT(program.status(), IsOk());
    model::JobSpec job;
    job.model.exported_uri = "file://" + archive;
    job.data.schema = schema;
    auto graph = ImportedGraph(job, std::make_shared<const exported::Program>(*std::move(program)));
    EXPECT_THAT(graph.status(), IsOk());
    model_.graph = *std::move(graph);
    model_.schema = std::move(schema);
    model_.array_format = format;
    model_.transform.columns.resize(model_.schema.numeric.size(), {.mean = 1, .inverse_deviation = 0.5});
    model_.transform.label.classes = model_.schema.label_classes;
    Write(kModelFile, ModelJson(model_, {.job = name}));
    Write(kSchemaFile, SchemaJson(model_));
    Write(kProgramFile, Contents(archive));
    WriteWeights(factor);
  }
  ~Export() { base::RemoveTempDir(folder_); }
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;

  void Write(std::string_view name, std::string_view text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  LoadedModel Load() const {
    auto model = ReadExport(folder_);
    EXPECT_THAT(model.status(), IsOk());
    return model.ok() ? *std::move(model) : LoadedModel();
  }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  void WriteWeights(float factor) const {
    const std::vector<ExportedTensor> tensors = TensorsOf(model_.graph);
    auto files = TensorFiles::Create(Volume(folder_), "weights", tensors);
    ASSERT_THAT(files.status(), IsOk());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const exported::StoredTensor& stored = model_.graph.imported->cut->program->stored.at(tensors[i].name);
      std::vector<float> values(static_cast<size_t>(tensors[i].spec.Size()));
      const auto* from = stored.bytes.data() + stored.offset * static_cast<int64_t>(exported::BytesOf(stored.type));
      if (stored.type == exported::ScalarType::kFloat32)
        std::memcpy(values.data(), from, values.size() * sizeof(float));
      if (tensors[i].spec.role != ParameterRole::kStatistic) {
        for (float& value : values) value *= factor;
      }
      ASSERT_THAT((*files)->Write(i, 0, values), IsOk());
    }
    ASSERT_THAT((*files)->Finish(), IsOk());
    std::filesystem::rename(folder_ / "weights" / kWeightsFile, folder_ / kWeightsFile);
  }

  std::filesystem::path folder_;
  ExportedModel model_;
};

struct Fixture {
  std::string name;
  std::vector<model::InputSpec> inputs;
};

model::InputSpec Floats(const std::string& name, std::vector<int64_t> shape) {
  return {.name = name, .type = "float32", .shape = std::move(shape)};
}
model::InputSpec Integers(const std::string& name, std::vector<int64_t> shape) {
  return {.name = name, .type = "int64", .shape = std::move(shape)};
}

std::vector<Fixture> AllFixtures() {
  return {{"mlp", {Floats("x", {4})}},
          {"conv", {Floats("x", {1, 8, 8})}},
          {"tied", {Integers("ids", {5})}},
          {"transformer", {Integers("ids", {6})}},
          {"two-inputs", {Floats("x", {4}), Integers("ids", {3})}},
          {"sparse", {Integers("ids", {3}), Integers("more", {4})}},
          {"recurrent", {Floats("x", {4, 3})}}};
}

model::SchemaSpec SchemaOf(const Fixture& fixture, const nlohmann::json& expected) {
  model::SchemaSpec schema;
  schema.task = model::Task::kMultiClass;
  for (int c = 0; c < expected["classes"].get<int>(); ++c) schema.label_classes.push_back(std::to_string(c));
  schema.inputs = fixture.inputs;
  return schema;
}

Batch BatchOf(const nlohmann::json& expected) {
  Batch batch;
  batch.samples = static_cast<int>(expected["labels"].size());
  const auto samples = static_cast<size_t>(batch.samples);
  for (size_t sample = 0; sample < samples; ++sample) {
    for (const auto& input : expected["inputs"]) {
      const size_t each = input["values"].size() / samples;
      for (size_t i = sample * each; i < (sample + 1) * each; ++i) {
        if (input["integers"].get<bool>()) {
          batch.ids.push_back(input["values"][i].get<int>());
        } else {
          batch.numerics.push_back(input["values"][i].get<float>());
        }
      }
    }
  }
  return batch;
}

TEST(ProgramTest, OutputsEqualEagerPyTorch) {
  const nlohmann::json outputs = ReadJson("outputs");
  for (const Fixture& fixture : AllFixtures()) {
    SCOPED_TRACE(fixture.name);
    const nlohmann::json expected = ReadJson(fixture.name);
    const Export made(fixture.name, Fixtures() + fixture.name + ".pt2", SchemaOf(fixture, expected));
    const LoadedModel model = made.Load();
    auto compute = MakeCompute(model);
    ASSERT_THAT(compute.status(), IsOk());
    std::vector<float> found;
    ASSERT_THAT((*compute)->Logits(BatchOf(expected), found), IsOk());
    const auto wanted =
        (expected.contains("outputs") ? expected["outputs"] : outputs[fixture.name]).get<std::vector<double>>();
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(found[i]), wanted[i], kTolerance * std::max(1.0, std::abs(wanted[i]))) << i;
    }
    EXPECT_THAT(ToOnnx(model).status(), IsOk());
    // Fewer samples than some programs accept.
    Batch one = BatchOf(expected);
    one.ids.resize(one.ids.size() / static_cast<size_t>(one.samples));
    one.numerics.resize(one.numerics.size() / static_cast<size_t>(one.samples));
    one.samples = 1;
    std::vector<float> alone;
    ASSERT_THAT((*compute)->Logits(one, alone), IsOk());
    ASSERT_EQ(alone.size(), found.size() / expected["labels"].size());
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(alone[i], found[i], kTolerance);
  }
}

RowStream::Read Text(std::string text) {
  return [text = std::move(text), at = size_t{0}](char* to, size_t bytes) mutable -> absl::StatusOr<size_t> {
    const size_t n = std::min(bytes, text.size() - at);
    text.copy(to, n, at);
    at += n;
    return n;
  };
}

model::SchemaSpec TableOf() {
  model::SchemaSpec schema;
  schema.task = model::Task::kMultiClass;
  schema.header = true;
  schema.label_column = 4;
  schema.label_classes = {"cat", "dog", "a, b"};
  schema.numeric = {0, 1, 2, 3};
  return schema;
}

TEST(ProgramTest, ReadsTablesAsTheTrainingDid) {
  const Export made("mlp", Fixtures() + "mlp.pt2", TableOf(), 1, "");
  LoadedModel model = made.Load();
  model.model.transform.header = {"a", "b", "c", "d", "kind"};
  const auto predict = [&](const std::string& text, int64_t bad,
                           BadRows* rows = nullptr) -> absl::StatusOr<std::string> {
    std::string out;
    const auto write = [&](std::string_view lines) {
      out += lines;
      return absl::OkStatus();
    };
    MEDLEY_RETURN_IF_ERROR(Predict(model, {"x.csv", Text(text)}, write, {.max_bad_rows = bad}, rows).status());
    return out;
  };
  const auto standard = predict("a,b,c,d,kind\n3,1,5,-1,cat\n1,1,1,1,dog\n", 0);
  ASSERT_THAT(standard.status(), IsOk());
  // Standardised, the rows are (1, 0, 2, -1) and zeros, whose logits are the last bias alone after relu(first bias).
  auto compute = MakeCompute(model);
  ASSERT_THAT(compute.status(), IsOk());
  Batch rows;
  rows.samples = 2;
  rows.numerics = {1, 0, 2, -1, 0, 0, 0, 0};
  std::vector<float> logits;
  ASSERT_THAT((*compute)->Logits(rows, logits), IsOk());
  std::string expected;
  const PredictionLines lines(model.model, false);
  for (size_t i = 0; i < 2; ++i) lines.Append(std::span(logits).subspan(i * 3, 3), expected);
  EXPECT_EQ(*standard, expected);

  EXPECT_THAT(predict("b,a,c,d,kind\n1,2,3,4,cat\n", 0).status(), StatusIs(absl::StatusCode::kInvalidArgument))
      << "columns with numbers have the names of the training data";
  EXPECT_THAT(predict("a,b,c,d,kind\n1,x,3,4,cat\n1,1,1,1,dog\n", 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  BadRows bad;
  const auto skipped = predict("a,b,c,d,kind\n1,x,3,4,cat\n1,1,1,1,dog\n", 1, &bad);
  ASSERT_THAT(skipped.status(), IsOk());
  EXPECT_EQ(bad.count, 1);
  EXPECT_EQ(skipped->front(), '\n');
  const auto quality =
      EvaluateQuality(model, {{"x.csv", Text("a,b,c,d,kind\n3,1,5,-1,cat\n1,1,1,1,dog\n")}}, {.max_bad_rows = 0});
  ASSERT_THAT(quality.status(), IsOk());
  EXPECT_EQ(quality->rows, 2);
  EXPECT_GT(quality->metrics.at("logLoss"), 0);
  // The rows of two files count together, and the bad rows too.
  const std::string first = "a,b,c,d,kind\n3,1,5,-1,cat\n1,x,1,1,dog\n",
                    second = "a,b,c,d,kind\n1,x,3,4,cat\n1,1,1,1,dog\n";
  const auto of_both = [&](int64_t most) {
    return EvaluateQuality(model, {{"x.csv", Text(first)}, {"y.csv", Text(second)}}, {.max_bad_rows = most});
  };
  const auto both = of_both(2);
  ASSERT_THAT(both.status(), IsOk());
  EXPECT_EQ(both->rows, 2);
  EXPECT_EQ(both->bad_rows.count, 2);
  EXPECT_NEAR(both->metrics.at("logLoss"), quality->metrics.at("logLoss"), 1e-6) << "sums of one row and of two";
  EXPECT_THAT(of_both(1).status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("y.csv:2")));
}

TEST(ProgramTest, SaysHowManyRowsItHasRead) {
  const Export made("mlp", Fixtures() + "mlp.pt2", TableOf(), 1, "");
  const LoadedModel model = made.Load();
  base::FakeClock clock;
  std::vector<std::string> lines;
  ReadProgress progress("x.csv", clock, [&](const std::string& line) { lines.push_back(line); });
  std::string text = "a,b,c,d,kind\n";
  for (int i = 0; i < 1000; ++i) text += "3,1,5,-1,cat\n";
  const auto write = [&](std::string_view) {
    clock.Advance(base::seconds(6));
    return absl::OkStatus();
  };
  ASSERT_THAT(Predict(model, {"x.csv", Text(text)}, write, {.progress = &progress}).status(), IsOk());
  EXPECT_THAT(lines.front(), testing::MatchesRegex("reading x.csv: [0-9]+ rows"));
  EXPECT_GT(lines.size(), 2U);
  lines.clear();
  ReadProgress again("x.csv", clock, [&](const std::string& line) { lines.push_back(line); });
  clock.Advance(base::seconds(6));
  ASSERT_THAT(EvaluateQuality(model, {{"x.csv", Text(text)}}, {.progress = &again}).status(), IsOk());
  EXPECT_THAT(lines, testing::SizeIs(1));
}

TEST(ProgramTest, SaysWhatIsWrongWithAnExport) {
  const Fixture fixture = AllFixtures().front();
  const nlohmann::json expected = ReadJson(fixture.name);
  const Export made(fixture.name, Fixtures() + fixture.name + ".pt2", SchemaOf(fixture, expected));
  const std::string archive = Contents((made.folder() / kProgramFile).string());
  made.Write(kProgramFile, archive.substr(0, archive.size() / 2));
  EXPECT_THAT(ReadExportedProgram(made.Load()).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  made.Write(kProgramFile, Contents(Fixtures() + "transformer.pt2"));
  EXPECT_THAT(ReadExportedProgram(made.Load()).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  made.Write(kProgramFile, archive);
  made.Write(kWeightsFile, "");
  EXPECT_THAT(ReadExportedProgram(made.Load()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("truncated")));
  std::filesystem::remove(made.folder() / kProgramFile);
  // The process says the same.
  EXPECT_THAT(MakeCompute(made.Load()).status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("program.pt2")));
}

TEST(ProgramTest, ModelsOfEarlierVersionsAreRefusedWithTheWayOut) {
  const Fixture fixture = AllFixtures().front();
  const Export made(fixture.name, Fixtures() + fixture.name + ".pt2", SchemaOf(fixture, ReadJson(fixture.name)));
  nlohmann::json text = nlohmann::json::parse(Contents((made.folder() / kModelFile).string()));
  text.erase("program");
  made.Write(kModelFile, text.dump());
  EXPECT_THAT(ReadExport(made.folder()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("load_state_dict")));
}

TEST(ProgramTest, RecurrentLayersAreThoseOfOnnx) {
  const Fixture fixture{"recurrent", {Floats("x", {4, 3})}};
  const Export made(fixture.name, Fixtures() + "recurrent.pt2", SchemaOf(fixture, ReadJson(fixture.name)));
  const auto onnx = ToOnnx(made.Load());
  ASSERT_THAT(onnx.status(), IsOk());
  for (const char* part : {"LSTM", "GRU", "bidirectional", "linear_before_reset", "hidden_size"}) {
    EXPECT_THAT(*onnx, HasSubstr(part));
  }
}

TEST(ProgramTest, OnnxRefusesWithOperatorAndModule) {
  const Fixture fixture{"dropout", {Floats("x", {1, 8, 8})}};
  model::SchemaSpec schema = SchemaOf(fixture, ReadJson("conv"));
  const Export made(fixture.name, Fixtures() + "dropout.pt2", schema);
  EXPECT_THAT(ToOnnx(made.Load()).status(), IsOk()) << "dropout does nothing in evaluation";
  // Batch norm without running statistics is no function of a sample.
  const Export counted("numbers", Fixtures() + "numbers.pt2", SchemaOf({"", {Floats("x", {4})}}, ReadJson("numbers")));
  EXPECT_THAT(ToOnnx(counted.Load()).status(),
              StatusIs(absl::StatusCode::kUnimplemented, testing::AllOf(HasSubstr("aten.mul"), HasSubstr("batch"))));
}

}  // namespace
}  // namespace medley::worker
