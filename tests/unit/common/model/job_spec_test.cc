#include "common/model/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <map>
#include <string>

#include "common/base/status.h"
#include "common/model/data_spec.h"
#include "common/model/task.h"

namespace medley::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kAdult[] = R"({
  "model": {"name": "ctrdnn", "parameters": {"embeddingDim": 8, "hidden": [64, 32]}},
  "data": {
    "train": {"uri": "file:///data/adult.train.csv", "format": "csv"},
    "test": {"uri": "file:///data/adult.test.csv", "format": "csv"},
    "schema": {"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 3, 5, 6, 7, 8, 9, 13],
               "numeric": [0, 2, 4, 10, 11, 12], "numericBuckets": 32},
    "maxBadRows": 3, "volume": {"mountPath": "/data"}},
  "training": {"epochs": 3, "batchSize": 256, "microBatches": 2,
               "optimizer": {"name": "sgd", "learningRate": 0.25}, "seed": 9007199254740991},
  "objective": {"minThroughput": 20000},
  "checkpoint": {"interval": "1m30s", "keep": 5, "volume": {"mountPath": "/checkpoints"},
                 "from": "/checkpoints/default-first-1234"}})";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// What is wrong with the text of a spec, or nothing.
std::string Problem(const std::string& text) {
  const absl::StatusOr<JobSpec> spec = ParseJobSpec(text);
  return std::string(base::Message(spec.ok() ? Validate(*spec) : spec.status()));
}

TEST(JobSpecTest, ReadsEveryField) {
  const absl::StatusOr<JobSpec> spec = ParseJobSpec(kAdult);
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  EXPECT_EQ(spec->model.name, "ctrdnn");
  EXPECT_EQ(spec->model.embedding_dim, 8);
  EXPECT_EQ(spec->model.embedding_rows, 65536);
  EXPECT_THAT(spec->model.hidden, ElementsAre(64, 32));
  EXPECT_EQ(spec->data.train.uri, "file:///data/adult.train.csv");
  ASSERT_TRUE(spec->data.test.has_value());
  EXPECT_EQ(spec->data.schema.label_column, 14);
  EXPECT_EQ(spec->data.schema.label_positive, ">50K");
  EXPECT_THAT(spec->data.schema.numeric, ElementsAre(0, 2, 4, 10, 11, 12));
  EXPECT_EQ(spec->data.schema.numeric_buckets, 32);
  EXPECT_EQ(spec->data.max_bad_rows, 3);
  EXPECT_EQ(spec->training.optimizer, "sgd");
  EXPECT_EQ(spec->training.learning_rate, 0.25);
  EXPECT_EQ(spec->training.seed, 9007199254740991U);
  EXPECT_EQ(spec->checkpoint.interval_seconds, 90);
  EXPECT_EQ(spec->checkpoint.path, "/checkpoints");
  EXPECT_EQ(spec->checkpoint.from, "/checkpoints/default-first-1234");
}

TEST(JobSpecTest, ColumnsByNameAndByNumber) {
  const std::string schema = R"("schema": {"label": {"column": "income", "positive": ">50K"}, "header": true,
               "categorical": ["work class", 3, "5"], "numeric": [0, 2], "numericBuckets": 32})";
  const std::string text = kAdult;
  const size_t begin = text.find("\"schema\"");
  const std::string old = text.substr(begin, text.find("32}", begin) + 3 - begin);
  const absl::StatusOr<JobSpec> spec = ParseJobSpec(Replaced(kAdult, old, schema));
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  const SchemaSpec& columns = spec->data.schema;
  EXPECT_EQ(columns.label_column, -1);
  EXPECT_EQ(columns.names.label, "income");
  EXPECT_THAT(columns.categorical, ElementsAre(-1, 3, -1));
  EXPECT_THAT(columns.names.categorical, ElementsAre("work class", "", "5"));
  EXPECT_THAT(columns.names.numeric, ElementsAre()) << "no column of the list is named";
  const auto error = [&](const std::string& from, const std::string& to) {
    const absl::StatusOr<JobSpec> wrong = ParseJobSpec(Replaced(kAdult, old, Replaced(schema, from, to)));
    return base::Message(wrong.ok() ? Validate(*wrong) : wrong.status());
  };
  EXPECT_THAT(error("\"5\"", "\"work class\""),
              HasSubstr("spec.data.schema.categorical[2]: column 'work class' is used twice"));
  EXPECT_THAT(error("\"5\"", "\"\""),
              HasSubstr("spec.data.schema.categorical[2]: must be the number or the name of a column, is \"\""));
  EXPECT_THAT(error("[0, 2]", "[0, 2.5]"), HasSubstr("spec.data.schema.numeric[1]: must be the number or the name"));
  EXPECT_THAT(error("[0, 2]", "0"), HasSubstr("spec.data.schema.numeric: must be a list of columns"));
}

TEST(JobSpecTest, RangesAndDatesAreColumns) {
  const auto schema = [](const std::string& text) {
    return ParseJobSpec(R"({"model": {"name": "mlp"}, "data": {"train": {"uri": "file:///x.csv", "format": "csv"},
                            "schema": {"header": true, "label": {"column": 0}, )" +
                        text + "}}}");
  };
  const auto spec = schema(R"("numeric": ["x08..x11", "2..4", "a..b"], "dates": ["when", 7], "dayFirst": true,
                              "missing": ["unknown"])");
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  const SchemaSpec& read = spec->data.schema;
  ASSERT_EQ(read.numeric.size(), 4U + 3 + 1 + 10);
  EXPECT_EQ(read.names.numeric[0], "x08");
  EXPECT_EQ(read.names.numeric[3], "x11");
  EXPECT_EQ(read.numeric[4], 2);
  EXPECT_EQ(read.names.numeric[7], "a..b") << "a name, as it has no numbers";
  EXPECT_EQ(read.names.numeric[8], "when");
  EXPECT_EQ(read.names.numeric[12], "when");
  EXPECT_EQ(read.numeric[13], 7);
  EXPECT_EQ(PartOf(read, 7), ColumnPart::kValue);
  EXPECT_EQ(PartOf(read, 12), ColumnPart::kHour);
  EXPECT_TRUE(read.day_first);
  EXPECT_EQ(read.missing, std::vector<std::string>{"unknown"});
  EXPECT_TRUE(Validate(*spec).ok()) << base::ToString(Validate(*spec));
  const auto error = [&](const std::string& text) {
    const auto wrong = schema(text);
    return base::Message(wrong.ok() ? Validate(*wrong) : wrong.status());
  };
  EXPECT_THAT(error(R"("numeric": ["x5..x3"])"), HasSubstr("is a range that must have from 1 to 4096 columns"));
  EXPECT_THAT(error(R"("numeric": ["x1..x5000"])"), HasSubstr("from 1 to 4096 columns"));
  EXPECT_THAT(error(R"("numeric": ["1..4000", "5000..6000"])"), HasSubstr("has more than 4096 columns"));
  EXPECT_THAT(error(R"("numeric": ["1..4", 3])"), HasSubstr("column 3 is used twice"));
  EXPECT_THAT(error(R"("numeric": ["when"], "dates": ["when"])"), HasSubstr("column 'when' is used twice"));
}

TEST(JobSpecTest, TheScheduleOfTheLearningRate) {
  const auto parse = [](const std::string& schedule) {
    return ParseJobSpec(
        Replaced(kAdult, "\"learningRate\": 0.25", "\"learningRate\": 0.25, \"schedule\": " + schedule));
  };
  const absl::StatusOr<JobSpec> spec =
      parse(R"({"kind": "cosine", "warmupSteps": 5, "steps": 90, "finalFactor": 0.5})");
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  EXPECT_EQ(spec->training.schedule->kind, "cosine");
  EXPECT_EQ(spec->training.schedule->warmup_steps, 5);
  EXPECT_EQ(spec->training.schedule->steps, 90);
  EXPECT_EQ(spec->training.schedule->final_factor, 0.5);
  for (const auto& [schedule, message] : std::map<std::string, std::string>{
           {R"({"kind": "linear"})", "schedule.kind: 'linear' is not one of constant, step, cosine"},
           {R"({"kind": "step", "everySteps": 1, "factor": 2})",
            "schedule.factor: must be at least 0 and at most 1, is 2"},
           {R"({"kind": "constant", "warmupSteps": -1})", "schedule.warmupSteps: must be at least 0 and at most"}}) {
    EXPECT_THAT(base::Message(parse(schedule).status()), HasSubstr(message));
  }
}

TEST(JobSpecTest, TheConstantsOfAnOptimizerHaveBounds) {
  const auto parse = [](const std::string& optimizer) {
    return ParseJobSpec(Replaced(kAdult, R"("name": "sgd", "learningRate": 0.25)", optimizer));
  };
  const absl::StatusOr<JobSpec> spec = parse(R"("name": "adam", "beta1": 0, "beta2": 0.5, "epsilon": 0.25)");
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  EXPECT_EQ(spec->training.beta1, 0);
  EXPECT_EQ(spec->training.beta2, 0.5);
  EXPECT_EQ(spec->training.epsilon, 0.25);
  EXPECT_FALSE(ParseJobSpec(kAdult)->training.beta1);
  for (const auto& [optimizer, message] : std::map<std::string, std::string>{
           {R"("name": "adam", "beta1": 1)", "beta1: must be at least 0 and less than 1, is 1"},
           {R"("name": "adam", "beta2": -1)", "beta2: must be at least 0 and less than 1, is -1"},
           {R"("name": "sgd", "momentum": 1)", "momentum: must be at least 0 and less than 1, is 1"},
           {R"("name": "sgd", "weightDecay": 2)", "weightDecay: must be at least 0 and at most 1, is 2"},
           {R"("name": "sgd", "weightDecay": 0.1, "rowDecay": -1)",
            "rowDecay: must be at least 0 and at most 1, is -1"},
           {R"("name": "adadelta")", "'adadelta' is not one of adagrad, adam, adamw, ftrl, rmsprop, sgd"},
           {R"("name": "ftrl", "l1": -1)", "l1: must be at least 0 and at most"}}) {
    EXPECT_THAT(base::Message(parse(optimizer).status()), HasSubstr(message));
  }
}

TEST(JobSpecTest, AModelMayBeExported) {
  const auto parse = [](const std::string& model) {
    const nlohmann::json spec = {{"model", nlohmann::json::parse(model)},
                                 {"data",
                                  {{"train", {{"uri", "file:///d.csv"}, {"format", "csv"}}},
                                   {"schema", {{"label", {{"column", 2}}}, {"numeric", {0, 1}}}}}},
                                 {"training", {{"optimizer", {{"name", "sgd"}, {"momentum", 0.9}}}}}};
    return ParseJobSpec(spec.dump());
  };
  const auto spec =
      parse(R"({"exported": {"uri": "file:///m.pt2"}, "cut": {"depth": 2, "modules": []}, "output": "1"})");
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  EXPECT_EQ(spec->model.exported_uri, "file:///m.pt2");
  EXPECT_EQ(spec->model.cut.depth, 2);
  EXPECT_EQ(spec->model.output, "1");
  EXPECT_THAT(base::Message(parse(R"({"exported": {"uri": "file:///m"}, "cut": {"depth": -1}})").status()),
              HasSubstr("cut.depth: must be at least 0"));
}

TEST(JobSpecTest, EvaluationsAndEarlyStoppingAreOptional) {
  absl::StatusOr<JobSpec> spec = ParseJobSpec(kAdult);
  ASSERT_TRUE(spec.ok());
  EXPECT_FALSE(spec->training.evaluation);
  EXPECT_FALSE(spec->training.early_stopping);
  spec = ParseJobSpec(Replaced(kAdult, "\"epochs\": 3",
                               R"("epochs": 3, "evaluation": {"everySteps": 1000},
                                  "earlyStopping": {"metric": "logLoss", "patience": 3, "minDelta": 0.25})"));
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  EXPECT_EQ(spec->training.evaluation->every_steps, 1000);
  EXPECT_EQ(spec->training.evaluation->every_epochs, 0);
  EXPECT_EQ(spec->training.early_stopping->metric, "logLoss");
  EXPECT_EQ(spec->training.early_stopping->patience, 3);
  EXPECT_EQ(spec->training.early_stopping->min_delta, 0.25);
}

TEST(JobSpecTest, ValidationDataAndTheExportedModel) {
  const auto with = [](const std::string& data, const std::string& spec) {
    std::string text = kAdult;
    const size_t at = text.find("\"data\": {");
    EXPECT_NE(at, std::string::npos);
    text.insert(at + 9, data);
    text.insert(1, spec);
    return ParseJobSpec(text);
  };
  const auto part = with(R"("validation": {"fraction": 0.25, "seed": 7}, )", R"("export": "Last", )");
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(base::ToString(Validate(*part)), "OK");
  EXPECT_EQ(part->data.validation->fraction, 0.25);
  EXPECT_EQ(part->data.validation->seed, 7U);
  EXPECT_FALSE(part->export_best);
  const auto plain = with("", "");
  EXPECT_TRUE(plain->export_best) << "the default";
  const auto file = with(R"("validation": {"uri": "file:///data/v.csv", "format": "csv"}, )", "");
  EXPECT_EQ(base::ToString(Validate(*file)), "OK");
  EXPECT_FALSE(with("", R"("export": "First", )").ok());
}

TEST(JobSpecTest, TheModelIsChosenByTheMetricOfTheJob) {
  JobSpec spec = *ParseJobSpec(kAdult);
  EXPECT_EQ(SelectionMetric(spec), "auc");
  spec.training.early_stopping = EarlyStoppingSpec{"logLoss", 1, 0};
  EXPECT_EQ(SelectionMetric(spec), "logLoss");
  spec.training.evaluation = EvaluationSpec{.every_epochs = 1, .metric = "accuracy"};
  EXPECT_EQ(SelectionMetric(spec), "accuracy");
}

// kAdult with another task and label.
std::string WithTask(const std::string& task, const std::string& label, const std::string& training = "") {
  const std::string text = Replaced(kAdult, R"("name": "ctrdnn")", R"("name": "ctrdnn", "task": ")" + task + '"');
  return Replaced(Replaced(text, R"({"column": 14, "positive": ">50K"})", label), R"("epochs": 3)",
                  R"("epochs": 3)" + training);
}

TEST(JobSpecTest, TasksHaveLabelsOfTheirOwn) {
  const auto parse = [](const std::string& text) {
    const absl::StatusOr<JobSpec> spec = ParseJobSpec(text);
    EXPECT_TRUE(spec.ok()) << base::ToString(spec.status());
    EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
    return *spec;
  };
  EXPECT_EQ(parse(kAdult).data.schema.task, Task::kBinary);
  JobSpec spec = parse(WithTask("regression", R"({"column": 14})"));
  EXPECT_EQ(spec.data.schema.task, Task::kRegression);
  EXPECT_EQ(OutputsOf(spec.data.schema), 1);
  spec = parse(WithTask("multiClass", R"({"column": 14})", R"(, "classWeights": {"balanced": true})"));
  EXPECT_EQ(spec.data.schema.task, Task::kMultiClass);
  EXPECT_EQ(OutputsOf(spec.data.schema), 0) << "the training data tell";
  EXPECT_TRUE(spec.training.class_weights->balanced);
  spec = parse(WithTask("multiClass", R"({"column": 14, "classes": ["b", "a"]})",
                        R"(, "classWeights": {"weights": {"a": 0.5}})"));
  EXPECT_THAT(spec.data.schema.label_classes, ElementsAre("b", "a"));
  EXPECT_EQ(OutputsOf(spec.data.schema), 2);
  EXPECT_EQ(spec.training.class_weights->weights.at("a"), 0.5);
  spec = parse(WithTask("multiLabel", R"({"columns": [14, 15]})"));
  EXPECT_THAT(spec.data.schema.label_columns, ElementsAre(14, 15));
  EXPECT_EQ(OutputsOf(spec.data.schema), 2);
}

TEST(JobSpecTest, WhatDoesNotFitTheTaskIsRefused) {
  const std::string column = R"({"column": 14})";
  EXPECT_EQ(Problem(WithTask("ranking", column)),
            "spec.model.task: 'ranking' is not one of binary, regression, multiClass, multiLabel, ownLoss");
  EXPECT_EQ(Problem(WithTask("multiLabel", R"({"columns": [14, 14]})")),
            "spec.data.schema.label.columns[1]: column 14 is used twice in the schema");
  EXPECT_EQ(Problem(WithTask("multiClass", R"({"column": 14, "classes": ["a", "b", "a"]})")),
            "spec.data.schema.label.classes: 'a' is named twice");
  EXPECT_THAT(Problem(WithTask("multiClass", R"({"column": 14, "classes": ["a"]})")),
              HasSubstr("must have at least 2 and at most 1000 items, has 1"));
  EXPECT_THAT(Problem(Replaced(WithTask("multiClass", column), "\"ctrdnn\"", "\"logistic\"")),
              HasSubstr("logistic needs spec.data.schema.label.classes"));
  EXPECT_THAT(Problem(WithTask("binary", column, R"(, "classWeights": {"weights": {">50K": 3}})")),
              HasSubstr("the classes of spec.model.task binary are \"0\" and \"1\", not '>50K'"));
  EXPECT_THAT(Problem(WithTask("binary", column, R"(, "classWeights": {"weights": {"1": -3}})")),
              HasSubstr("classWeights.weights.1: must be at least 0 and at most"));
  EXPECT_THAT(Problem(WithTask("binary", column, R"(, "classWeights": {"weights": {"1": "x"}})")),
              HasSubstr("classWeights.weights: the value of '1' must be a number"));
  EXPECT_EQ(Problem(Replaced(WithTask("regression", column), R"("regression")", R"("regression", "loss": "huber")")),
            "spec.model.loss: 'huber' is not one of mse, mae");
}

TEST(JobSpecTest, OwnLayersEndInTheOutputsOfTheTask) {
  JobSpec spec = *ParseJobSpec(WithTask("multiLabel", R"({"columns": [14, 15]})"));
  spec.model.name.clear();
  spec.model.layers = {{"e", "Embedding", 4, ""}, {"c", "FullyConnected", 2, ""}, {"l", "Loss", 0, ""}};
  EXPECT_EQ(base::ToString(Validate(spec)), "OK");
  spec.model.layers[1].out = 3;
  EXPECT_EQ(
      base::Message(Validate(spec)),
      "spec.model.layers[2]: the Loss of spec.model.task multiLabel takes a logit for each label: the layer before "
      "must be FullyConnected with out 2 and no activation");
  spec.data.schema.label_columns.clear();
  spec.data.schema.label_column = 14;
  spec.data.schema.task = Task::kMultiClass;
  EXPECT_EQ(base::ToString(Validate(spec)), "OK") << "checked when the training data are known";
  spec.model.layers[1].activation = "relu";
  EXPECT_THAT(base::Message(Validate(spec)), HasSubstr("a logit for each class"));
}

struct Case {
  const char* from;
  const char* to;
  const char* message;
};

class JobSpecErrorTest : public ::testing::TestWithParam<Case> {};

TEST_P(JobSpecErrorTest, NamesTheField) {
  const absl::StatusOr<JobSpec> spec = ParseJobSpec(Replaced(kAdult, GetParam().from, GetParam().to));
  const absl::Status status = spec.ok() ? Validate(*spec) : spec.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(base::Message(status), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, JobSpecErrorTest,
    ::testing::Values(Case{"\"epochs\": 3", "\"epochs\": \"3\"", "spec.training.epochs: must be an integer"},
                      Case{"\"epochs\": 3", "\"epochs\": 2.5", "spec.training.epochs: must be an integer"},
                      Case{"\"epochs\": 3", "\"epochs\": 0", "spec.training.epochs: must be at least 1"},
                      Case{"\"epochs\": 3", "\"epochs\": 99999999999",
                           "spec.training.epochs: must be an integer in [-2147483648, 2147483647]"},
                      Case{"9007199254740991", "-1",
                           "spec.training.seed: must be an integer in [0, 18446744073709551615]"},
                      Case{"[64, 32]", "[64, \"x\"]", "spec.model.parameters.hidden[1]: must be an integer"},
                      Case{"[64, 32]", "[64, 0]", "spec.model.parameters.hidden[1]: must be at least 1"},
                      Case{"\"ctrdnn\"", "\"resnet\"",
                           "spec.model.name: 'resnet' is not one of ctrdnn, mlp, logistic, residual, two-tower"},
                      Case{"{\"name\": \"ctrdnn\"", "{\"layers\": [{\"name\": \"l\", \"kind\": \"Loss\"}]",
                           "spec.model.layers[0]: the Loss takes one logit"},
                      Case{"\"format\": \"csv\"", "\"format\": \"orc\"", "spec.data.train.format: 'orc'"},
                      Case{"[0, 2,", "[0, 1,", "spec.data.schema.numeric[1]: column 1 is used twice"},
                      Case{"\"column\": 14", "\"column\": -1", "spec.data.schema.label.column: must be at least 0"},
                      Case{"\"name\": \"sgd\"", "\"name\": \"lion\"", "spec.training.optimizer.name: 'lion'"},
                      Case{"\"epochs\": 3", "\"evaluation\": {\"everyEpochs\": -1}",
                           "spec.training.evaluation.everyEpochs: must be at least 1"},
                      Case{"\"epochs\": 3", "\"earlyStopping\": {\"metric\": \"hinge\", \"patience\": 1}",
                           "spec.training.earlyStopping.metric: 'hinge' is not one of auc, prAuc, "},
                      Case{"\"epochs\": 3", "\"earlyStopping\": {\"metric\": \"auc\"}",
                           "spec.training.earlyStopping.patience: is required"},
                      Case{"\"1m30s\"", "\"soon\"", "spec.checkpoint.interval"},
                      Case{"\"maxBadRows\": 3", "\"maxBadRows\": -3", "spec.data.maxBadRows"},
                      Case{"{\"uri\": \"file:///data/adult.train.csv\", \"format\": \"csv\"}", "7",
                           "spec.data.train: must be an object"}));

TEST(JobSpecTest, RefusesWhatIsNotJson) {
  EXPECT_FALSE(ParseJobSpec("{").ok());
  EXPECT_FALSE(ParseJobSpec("[]").ok());
}

TEST(JobSpecTest, LayersAreAChainThatEndsInTheLoss) {
  const std::string layers = R"("layers": [{"name": "emb", "kind": "Embedding", "out": 4},
      {"name": "fc", "kind": "FullyConnected", "out": 1}, {"name": "loss", "kind": "Loss"}])";
  const absl::StatusOr<JobSpec> spec = ParseJobSpec(Replaced(kAdult, "\"name\": \"ctrdnn\"", layers));
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  JobSpec twice = *spec;
  twice.model.layers[1].kind = "Embedding";
  EXPECT_EQ(base::Message(Validate(twice)),
            "spec.model.layers[1].kind ('fc'): the Embedding 'emb' has some of its ids; give each its own by first and "
            "fields");
}

// A list of layers that does not fit is refused in one sentence, which names the layer. 3 ids, 2 numbers.
TEST(JobSpecTest, LayersThatDoNotFitAreNamed) {
  using Layers = std::vector<LayerSpec>;
  const LayerSpec numbers{.name = "numbers", .kind = "Numerics"};
  const LayerSpec e{.name = "e", .kind = "Embedding", .out = 12, .numerics = false};
  const LayerSpec out{.name = "out", .kind = "FullyConnected", .out = 1}, loss{.name = "loss", .kind = "Loss"};
  const auto of = [](const std::string& kind, std::vector<std::string> inputs, int dim = 0) {
    return LayerSpec{.name = "x", .kind = kind, .inputs = std::move(inputs), .dim = dim};
  };
  const auto fc = [](const std::string& name, int width, std::vector<std::string> inputs = {}) {
    return LayerSpec{.name = name, .kind = "FullyConnected", .out = width, .inputs = std::move(inputs)};
  };
  const LayerSpec target{.name = "t", .kind = "Embedding", .out = 4, .first = 2, .negatives = 64, .numerics = false};
  const LayerSpec context{.name = "c", .kind = "Embedding", .out = 4, .fields = 2, .combine = "sum", .numerics = false};
  const LayerSpec drawn_loss{.name = "loss", .kind = "Loss", .negatives = 64};
  const auto with = [](LayerSpec layer, auto change) {
    change(layer);
    return layer;
  };
  struct Refused {
    Layers layers;
    std::string message;
  };
  const std::vector<Refused> cases = {
      {{numbers, fc("b", 16), e, of("Interaction", {"b", "e"}, 16), out, loss},
       "spec.model.layers[3] ('x'): Interaction takes vectors of 16 numbers, but 'e' has 36 numbers"},
      {{e, of("Interaction", {"e"}), out, loss},
       "spec.model.layers[1].dim ('x'): a layer of the kind Interaction needs it: how long its vectors are"},
      {{e, of("FactorizationMachine", {"e"}, 36), out, loss},
       "spec.model.layers[1] ('x'): FactorizationMachine multiplies pairs of vectors, but its inputs are one vector of "
       "36 "
       "numbers"},
      {{e, fc("narrow", 8), of("Cross", {"e", "narrow"}), out, loss},
       "spec.model.layers[2] ('x'): Cross multiplies inputs of one width, but 'e' has 36 and 'narrow' has 8 numbers"},
      {{e, fc("a", 4, {"e"}), fc("b", 6, {"e"}), of("Cosine", {"a", "b"}), out, loss},
       "spec.model.layers[3] ('x'): Cosine compares the vectors of inputs of one width, but 'a' has 4 and 'b' has 6 "
       "numbers"},
      {{e, with(of("Slice", {"e"}, 12), [](LayerSpec& s) { s.first = 8, s.out = 5; }), out, loss},
       "spec.model.layers[1] ('x'): Slice takes the numbers 8 to 12 of vectors that have 12"},
      {{numbers, e, of("Pool", {"e"}, 12), out, loss},
       "spec.model.layers[0] ('numbers'): no layer after it takes its outputs"},
      {{e, of("Concat", {"e"}), out, loss},
       "spec.model.layers[1].inputs ('x'): a layer of the kind Concat has 2 to 64, not 1"},
      {{e, of("Concat", {"e", "out"}), out, loss}, "spec.model.layers[1].inputs ('x'): no layer before it is 'out'"},
      {{numbers, e, of("Concat", {"e", "numbers"}), out, loss},
       "spec.model.layers[2].inputs ('x'): must be different layers, in the order of spec.model.layers"},
      {{with(e, [](LayerSpec& s) { s.fields = 4; }), out, loss},
       "spec.model.layers[0].fields ('e'): it would look up the ids 0 to 3, but a sample has 3, counted from 0"},
      {{e, with(out, [](LayerSpec& s) { s.dim = 3; }), loss},
       "spec.model.layers[1].dim ('out'): a layer of the kind FullyConnected has none"},
      {{e, with(of("Pool", {"e"}, 12), [](LayerSpec& s) { s.combine = "concatenate"; }), out, loss},
       "spec.model.layers[1].combine ('x'): 'concatenate' is not one of sum, mean, max"},
      {{e, of("Pool", {"e"}, 12), loss},
       "spec.model.layers[2]: the Loss of spec.model.task binary takes one number, but 'x' gives 12"},
      {{of("Cross", {}), out, loss},
       "spec.model.layers[0].inputs ('x'): the first layer must be an Embedding, Numerics or FullyConnected"},
      // Noise-contrastive estimation.
      {{context, target, of("Match", {"c", "t"}, 4), drawn_loss},
       "spec.model.layers[1].negatives ('t'): 64 rows cannot be drawn beside that of the sample from a table of 64 "
       "rows "
       "(spec.model.parameters.embeddingRows)"},
      {{context, with(target, [](LayerSpec& s) { s.negatives = 5; }), of("Match", {"c", "t"}, 4), loss},
       "spec.model.layers[3].negatives ('loss'): must be 5, as many as the Embedding draws"},
      {{with(target, [](LayerSpec& s) { s.first = 0, s.negatives = 5; }), of("Pool", {"t"}, 4),
        with(drawn_loss, [](LayerSpec& s) { s.negatives = 5; })},
       "spec.model.layers[0].negatives ('t'): an Embedding that draws rows looks up the last id of the sample only (0 "
       "to 2 "
       "are given), concatenates, and has numerics: false"},
      {{context, with(target, [](LayerSpec& s) { s.negatives = 5; }), of("Match", {"c", "t"}, 2),
        with(drawn_loss, [](LayerSpec& s) { s.negatives = 5; })},
       "spec.model.layers[3].negatives: the Loss takes a logit for the sample and one for each of 5 drawn rows, but "
       "'x' "
       "gives 24"},
  };
  for (const Refused& tested : cases) {
    JobSpec job;
    job.data.train = {"file:///x.csv", "csv"};
    job.data.schema = {.label_column = 0, .categorical = {1, 2, 3}, .numeric = {4, 5}};
    job.model.embedding_rows = 64;
    job.model.layers = tested.layers;
    EXPECT_EQ(base::Message(Validate(job)), tested.message);
  }
}

TEST(JobSpecTest, DropoutFollowsALayer) {
  const auto with = [](const std::string& model) {
    return ParseJobSpec(Replaced(kAdult, "\"name\": \"ctrdnn\"", model));
  };
  const auto layers = [&](const std::string& drop) {
    return with(R"("layers": [{"name": "emb", "kind": "Embedding", "out": 4}, )" + drop +
                R"({"name": "fc", "kind": "FullyConnected", "out": 1}, {"name": "loss", "kind": "Loss"}])");
  };
  const std::string half = R"({"name": "d", "kind": "Dropout", "fraction": 0.5}, )";
  const absl::StatusOr<JobSpec> spec = layers(half);
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  EXPECT_EQ(spec->model.layers[1].fraction, 0.5);
  const std::string two = Replaced(half, "\"d\"", "\"e\"");
  for (const auto& [drop, message] : std::map<std::string, std::string>{
           {Replaced(half, "0.5", "1"), "spec.model.layers[1].fraction: must be at least 0 and less than 1, is 1"},
           {Replaced(half, "0.5", "-0.5"),
            "spec.model.layers[1].fraction: must be at least 0 and less than 1, is -0.5"},
           {half + two, "spec.model.layers[2].kind: a Dropout must follow an Embedding or a FullyConnected layer"}}) {
    const absl::StatusOr<JobSpec> refused = layers(drop);
    EXPECT_THAT(base::Message(refused.ok() ? Validate(*refused) : refused.status()), HasSubstr(message)) << drop;
  }
  JobSpec last = *layers("");
  last.model.layers.insert(last.model.layers.begin() + 2, spec->model.layers[1]);
  EXPECT_THAT(base::Message(Validate(last)), HasSubstr("a Dropout cannot be the last layer before the Loss"));
  last.model.layers.erase(last.model.layers.begin() + 2);
  last.model.layers.insert(last.model.layers.begin(), spec->model.layers[1]);
  EXPECT_THAT(base::Message(Validate(last)), HasSubstr("a Dropout must follow"));
}

TEST(JobSpecTest, WeightsDecayAlsoBesideTables) {
  JobSpec spec = *ParseJobSpec(kAdult);
  spec.training.weight_decay = 0.01;
  spec.training.row_decay = 0.1;
  EXPECT_EQ(base::ToString(Validate(spec)), "OK");
  spec.training.optimizer = "adamw";
  EXPECT_EQ(base::ToString(Validate(spec)), "OK");
}

TEST(JobSpecTest, WeightsOfRowsAreAColumnOfTheirOwn) {
  const auto with = [](const std::string& weight) {
    return ParseJobSpec(Replaced(kAdult, "\"maxBadRows\"", "\"weight\": " + weight + ", \"maxBadRows\""));
  };
  const absl::StatusOr<JobSpec> spec = with("15");
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  EXPECT_EQ(spec->data.schema.weight_column, 15);
  EXPECT_EQ(base::Message(Validate(*with("4"))), "spec.data.schema.numeric[2]: column 4 is used twice in the schema");
  EXPECT_EQ(base::Message(Validate(*with("14"))), "spec.data.weight: column 14 is used twice in the schema");
  EXPECT_FALSE(with("1.5").ok());
}

TEST(JobSpecTest, ALogarithmIsOfARegression) {
  const auto spec = ParseJobSpec(WithTask("regression", R"({"column": 14, "transform": "Log1p"})"));
  ASSERT_TRUE(spec.ok()) << base::ToString(spec.status());
  EXPECT_EQ(base::ToString(Validate(*spec)), "OK");
  EXPECT_TRUE(spec->data.schema.label_log);
  EXPECT_FALSE(ParseJobSpec(WithTask("regression", R"({"column": 14, "transform": "None"})"))->data.schema.label_log);
  EXPECT_EQ(base::Message(ParseJobSpec(WithTask("regression", R"({"column": 14, "transform": "sqrt"})")).status()),
            "spec.data.schema.label.transform: 'sqrt' is not one of None, Log1p");
}

}  // namespace
}  // namespace medley::model
