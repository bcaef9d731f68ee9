#include "worker/export/exported_model.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "worker/export/tensor_files.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

// One layer of each kind that takes vectors, and layers that do not take the one before them. 2 ids, 2 numbers.
std::vector<model::LayerSpec> AllKinds() {
  return {{.name = "n", .kind = "Numerics"},
          {.name = "e", .kind = "Embedding", .out = 4, .fields = 1, .numerics = false},
          {.name = "f", .kind = "Embedding", .out = 4, .first = 1, .combine = "sum", .numerics = true},
          {.name = "s", .kind = "Slice", .out = 2, .inputs = {"e"}, .dim = 4, .first = 1},
          {.name = "add", .kind = "Add", .inputs = {"n", "s"}},
          {.name = "times", .kind = "Multiply", .inputs = {"n", "add"}},
          {.name = "pool", .kind = "Pool", .inputs = {"e", "f"}, .dim = 2, .combine = "max"},
          {.name = "mean", .kind = "Pool", .inputs = {"e", "f"}, .dim = 2, .combine = "mean"},
          {.name = "pairs", .kind = "Interaction", .inputs = {"n", "e", "f"}, .dim = 2},
          {.name = "fm", .kind = "FactorizationMachine", .inputs = {"e", "f"}, .dim = 2},
          {.name = "match", .kind = "Match", .inputs = {"e", "f"}, .dim = 2},
          {.name = "dot", .kind = "InnerProduct", .inputs = {"pool", "mean"}},
          {.name = "cos", .kind = "Cosine", .inputs = {"pool", "mean"}},
          {.name = "c1", .kind = "Cross", .inputs = {"f"}},
          {.name = "c2", .kind = "Cross", .inputs = {"f", "c1"}},
          {.name = "skip", .kind = "FullyConnected", .out = 3, .activation = "tanh", .inputs = {"times"}},
          {.name = "all", .kind = "Concat", .inputs = {"pairs", "fm", "match", "dot", "cos", "c2", "skip"}},
          {.name = "out", .kind = "FullyConnected", .out = 1},
          {.name = "loss", .kind = "Loss"}};
}

ExportedModel Model(const std::string& name, model::Task task = model::Task::kBinary) {
  model::JobSpec job;
  job.model.name = name;
  job.model.embedding_dim = 4;
  job.model.embedding_rows = 100;
  job.model.hidden = {8};
  if (name == "residual") job.model.hidden = {8, 4, 8};
  if (name == "layers") {
    job.model.name.clear();
    job.model.layers = AllKinds();
  }
  job.data.train = {"file:///x.csv", "csv"};
  job.data.schema = {.label_column = 4,
                     .label_positive = ">50K",
                     .categorical = {0, 3},
                     .numeric = {1, 2},
                     .numeric_buckets = name == "ctrdnn" ? 4 : 0,
                     .header = true};
  ExportedModel model;
  job.data.schema.task = task;
  if (task != model::Task::kBinary) job.data.schema.label_positive.clear();
  if (task == model::Task::kRegression) model.transform.label = {.mean = 0.1F, .deviation = 3e7F};
  if (task == model::Task::kMultiClass) model.transform.label.classes = {"a", "b \"c\"", "d"};
  if (task == model::Task::kMultiLabel) {
    job.data.schema.label_column = -1;
    job.data.schema.label_columns = {6, 4};
  }
  model.graph = *BuildGraph(job, static_cast<int>(model.transform.label.classes.size()));
  model.schema = job.data.schema;
  model.delimiter = '\t';
  model.embedding_rows = 100;
  model.transform.columns = {{.log = true, .mean = 0.1F, .inverse_deviation = 1.0F / 3, .edges = {0.1F, 2.5F}},
                             {.mean = -3e7F, .inverse_deviation = 0}};
  if (name != "ctrdnn") model.transform.columns[0].edges.clear();
  return model;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ExportedModelTest, NamesOfColumnsAreReadBack) {
  ExportedModel model = Model("mlp");
  model.schema.label_column = -1;
  model.schema.names = {.label = "income", .categorical = {"", "a \"b\""}};
  model.schema.categorical[1] = -1;
  const std::string schema = SchemaJson(model);
  const auto read = ParseExportedModel(ModelJson(model, {}), schema);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->schema.names.label, "income");
  EXPECT_EQ(read->schema.names.categorical, model.schema.names.categorical);
  EXPECT_TRUE(read->schema.names.numeric.empty());
  EXPECT_EQ(read->schema.categorical, model.schema.categorical);
  EXPECT_EQ(ParseExportedModel(ModelJson(model, {}), Replaced(schema, "\"header\": true", "\"header\": false"))
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ExportedModelTest, HowValuesAreReadIsReadBack) {
  ExportedModel model = Model("ctrdnn");
  model.schema.parts = {model::ColumnPart::kValue, model::ColumnPart::kHour};
  model.schema.missing = {"unknown", "-999"};
  model.schema.day_first = true;
  model.max_bad_rows = 7;
  model.transform.columns[1].mean = 1700000001.25;
  model.transform.header = {"", "a", "caf\xe9", ""};  // an index of pandas and a column behind have no names
  const std::string schema = SchemaJson(model);
  const auto read = ParseExportedModel(ModelJson(model, {}), schema);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->schema.parts, model.schema.parts);
  EXPECT_EQ(read->schema.missing, model.schema.missing);
  EXPECT_TRUE(read->schema.day_first);
  EXPECT_EQ(read->max_bad_rows, 7);
  EXPECT_EQ(read->transform.columns[1].mean, 1700000001.25);
  EXPECT_EQ(read->transform.header, model.transform.header);
  EXPECT_FALSE(read->transform.single_precision);
  model.transform.header = {"", "a"};
  const auto text = ParseExportedModel(ModelJson(model, {}), SchemaJson(model));
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(text->transform.header, model.transform.header);
  EXPECT_EQ(ParseExportedModel(ModelJson(model, {}), Replaced(SchemaJson(model), "\"a\"\n", "7\n")).status().code(),
            absl::StatusCode::kInvalidArgument);
  // Earlier versions say nothing about precision, and wrote float32.
  const auto old = ParseExportedModel(ModelJson(model, {}), Replaced(schema, "\"precision\"", "\"other\""));
  ASSERT_THAT(old, IsOk());
  EXPECT_TRUE(old->transform.single_precision);
  EXPECT_EQ(old->transform.columns[1].mean, static_cast<double>(1700000001.25F));
  EXPECT_EQ(ParseExportedModel(ModelJson(model, {}), Replaced(schema, "\"hour\"", "\"minute\"")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ExportedModelTest, EveryModelIsReadBackAsItWasWritten) {
  for (const char* name : {"ctrdnn", "mlp", "logistic", "residual", "two-tower", "layers"}) {
    const ExportedModel model = Model(name);
    const auto read = ParseExportedModel(ModelJson(model, {}), SchemaJson(model));
    ASSERT_THAT(read, IsOk()) << name;
    EXPECT_EQ(read->graph.name, name);
    EXPECT_EQ(read->graph.shape, model.graph.shape);
    EXPECT_EQ(read->schema.categorical, model.schema.categorical);
    EXPECT_EQ(read->schema.numeric, model.schema.numeric);
    EXPECT_EQ(read->schema.label_positive, ">50K");
    EXPECT_EQ(read->delimiter, '\t');
    EXPECT_TRUE(read->schema.header);
    ASSERT_EQ(read->transform.columns.size(), 2U);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(read->transform.columns[i].log, model.transform.columns[i].log);
      EXPECT_EQ(read->transform.columns[i].mean, model.transform.columns[i].mean) << "exactly, or ids change";
      EXPECT_EQ(read->transform.columns[i].inverse_deviation, model.transform.columns[i].inverse_deviation);
      EXPECT_EQ(read->transform.columns[i].edges, model.transform.columns[i].edges);
    }
    ASSERT_EQ(read->graph.operations.size(), model.graph.operations.size());
    for (size_t i = 0; i < model.graph.operations.size(); ++i) {
      const Operation& is = read->graph.operations[i];
      const Operation& was = model.graph.operations[i];
      EXPECT_EQ(is.kind, was.kind);
      EXPECT_EQ(is.activation, was.activation);
      EXPECT_EQ(is.sum_fields, was.sum_fields);
      EXPECT_EQ(is.reads_numerics, was.reads_numerics);
      EXPECT_EQ(is.output_width, was.output_width);
      EXPECT_EQ(is.input_width, was.input_width);
      EXPECT_EQ(is.inputs, was.inputs);
      EXPECT_EQ(is.dim, was.dim);
      EXPECT_EQ(is.first, was.first);
      EXPECT_EQ(is.combine, was.combine);
      ASSERT_EQ(is.parameters.size(), was.parameters.size());
      for (size_t p = 0; p < is.parameters.size(); ++p) {
        EXPECT_EQ(is.parameters[p].first_field, was.parameters[p].first_field);
        EXPECT_EQ(is.parameters[p].fields, was.parameters[p].fields);
      }
    }
    const auto is = TensorsOf(read->graph);
    const auto was = TensorsOf(model.graph);
    ASSERT_EQ(is.size(), was.size());
    for (size_t i = 0; i < is.size(); ++i) {
      EXPECT_EQ(is[i].name, was[i].name);
      EXPECT_EQ(is[i].shape, was[i].shape);
    }
  }
}

TEST(ExportedModelTest, GraphsThatDoNotFitAreRefused) {
  const auto refused = [&](const char* name, const std::string& from, const std::string& to,
                           const std::string& message) {
    const ExportedModel model = Model(name);
    EXPECT_THAT(ParseExportedModel(Replaced(ModelJson(model, {}), from, to), SchemaJson(model)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  const std::string inputs = "\"fc1\",\n        \"fc3\"";
  refused("residual", inputs, "\"fc1\"", "inputs: must be 2 to 64 layers before it, not 1");
  refused("residual", inputs, "\"fc3\", \"fc1\"", "inputs: must be different layers, in their order");
  refused("residual", inputs, "\"fc1\", \"fc1\"", "inputs: must be different layers, in their order");
  refused("residual", inputs, "\"fc1\", \"fc_out\"", "inputs: no layer before it is 'fc_out'");
  refused("residual", inputs, "\"fc2\", \"fc3\"", "adds inputs of one width, but 'fc2' has 4 and 'fc3' has 8 numbers");
  refused("two-tower", "\"fc1_1\",\n        \"fc2_1\"", "\"embedding_1\", \"fc2_1\"",
          "multiplies inputs of one width, but 'embedding_1' has 4 and 'fc2_1' has 8 numbers");
  refused("two-tower", "\"firstField\": 1", "\"firstField\": 0", "fields: another Embedding has some of them");
  refused("two-tower", "\"firstField\": 1", "\"firstField\": 2",
          "fields: the ids of a sample are [0, 2), not [2, 2 + 1)");
  refused("two-tower", "\"firstField\": 1", "\"firstField\": -1", "not [-1, -1 + 1)");
  refused("layers", "\"dim\": 2,\n      \"combine\": \"max\"", "\"dim\": 3, \"combine\": \"max\"",
          "takes vectors of 3 numbers, but 'e' has 4 numbers");
  refused("layers", "\"combine\": \"max\"", "\"combine\": \"least\"", "combine: 'least' is unknown");
  refused("layers", "\"kind\": \"Interaction\"", "\"kind\": \"Match\"", "must be 2 to 2 layers before it, not 3");
  refused("layers", "\"dim\": 2,\n      \"outputs\": 15", "\"dim\": 2, \"outputs\": 20",
          "outputs is 20, but must be 15");
  refused("layers", "\"dim\": 2,\n      \"outputs\": 15", "\"outputs\": 15", "dim: is required");
  refused("layers", "\"first\": 1,", "\"first\": 3,", "takes the numbers 3 to 4 of vectors that have 4");
  refused("layers", "\"first\": 1,", "\"first\": -1,", "first: -1 is out of range");
  refused("two-tower", "\"kind\": \"Multiply\"", "\"kind\": \"Divide\"", "kind: 'Divide' is unknown");
}

// Readers of version 1 would take the layer before instead of the one that is named.
TEST(ExportedModelTest, NamedInputsAreAnotherVersion) {
  const ExportedModel chain = Model("residual"), graph = Model("layers");
  EXPECT_THAT(ModelJson(chain, {}), HasSubstr("\"formatVersion\": 1"));
  EXPECT_THAT(ModelJson(graph, {}), HasSubstr("\"formatVersion\": 2"));
  EXPECT_THAT(ParseExportedModel(Replaced(ModelJson(graph, {}), "\"formatVersion\": 2", "\"formatVersion\": 3"),
                                 SchemaJson(graph)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("formatVersion 3 is not supported")));
}

TEST(ExportedModelTest, EveryTaskIsReadBackAsItWasWritten) {
  using model::Task;
  for (const Task task : {Task::kBinary, Task::kRegression, Task::kMultiClass, Task::kMultiLabel}) {
    const ExportedModel model = Model("mlp", task);
    const std::string json = ModelJson(model, {});
    EXPECT_THAT(json, HasSubstr(std::string("\"task\": \"") + model::TaskName(task) + "\""));
    const auto read = ParseExportedModel(json, SchemaJson(model));
    ASSERT_THAT(read, IsOk()) << json;
    EXPECT_EQ(read->schema.task, task);
    EXPECT_EQ(read->schema.label_column, model.schema.label_column);
    EXPECT_EQ(read->schema.label_columns, model.schema.label_columns);
    EXPECT_EQ(read->transform.label.mean, model.transform.label.mean) << "exactly";
    EXPECT_EQ(read->transform.label.deviation, model.transform.label.deviation);
    EXPECT_EQ(read->transform.label.classes, model.transform.label.classes);
    EXPECT_EQ(read->graph.Outputs(), model.graph.Outputs());
    EXPECT_EQ(read->graph.operations.back().loss, model.graph.operations.back().loss);
    EXPECT_EQ(read->graph.shape, model.graph.shape);
  }
}

TEST(ExportedModelTest, LogarithmsAndWeightsAreReadBack) {
  ExportedModel model = Model("mlp", model::Task::kRegression);
  model.transform.label.log = true;
  model.schema.weight_column = 7;
  model.transform.weight_mean = 0.1;
  const std::string json = ModelJson(model, {}), schema = SchemaJson(model);
  auto read = ParseExportedModel(json, schema);
  ASSERT_THAT(read, IsOk()) << json;
  EXPECT_TRUE(read->transform.label.log);
  EXPECT_TRUE(read->schema.label_log);
  EXPECT_EQ(read->schema.weight_column, 7);
  EXPECT_EQ(read->transform.weight_mean, 0.1);
  EXPECT_THAT(json, HasSubstr("exp(mean + deviation x"));
  EXPECT_THAT(ParseExportedModel(Replaced(json, "\"log1p\"", "\"sqrt\""), schema),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("label.transform: 'sqrt' is unknown")));
  EXPECT_THAT(ParseExportedModel(json, Replaced(schema, "\"mean\": 0.1\n", "\"mean\": 0\n")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("weight.mean: must be above 0")));
  model.schema.weight_column = -1;
  model.schema.names.weight = "w \"1\"";
  read = ParseExportedModel(json, SchemaJson(model));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->schema.names.weight, "w \"1\"");
  EXPECT_EQ(read->schema.weight_column, -1);
  const ExportedModel plain = Model("mlp", model::Task::kRegression);
  read = ParseExportedModel(ModelJson(plain, {}), SchemaJson(plain));
  ASSERT_THAT(read, IsOk());
  EXPECT_FALSE(read->transform.label.log);
  EXPECT_EQ(read->schema.weight_column, -1);
}

// JSON holds no bytes that are not text.
TEST(ExportedModelTest, ClassesInAnotherEncodingAreReadBackAsTheyWere) {
  ExportedModel model = Model("mlp", model::Task::kMultiClass);
  EXPECT_THAT(ModelJson(model, {}), testing::Not(HasSubstr("classBytes")));
  model.transform.label.classes = {"caf\xe9", "caf\xe8", "caf\\xe9"};
  const std::string json = ModelJson(model, {});
  const auto read = ParseExportedModel(json, SchemaJson(model));
  ASSERT_THAT(read, IsOk()) << json;
  EXPECT_EQ(read->transform.label.classes, model.transform.label.classes);
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& message) {
    EXPECT_THAT(ParseExportedModel(Replaced(json, from, to), SchemaJson(model)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused("\"636166e9\",", "", "classBytes: has 2 names, classes has 3");
  refused("\"636166e9\"", "\"636166e\"", "classBytes[0]: 7 hexadecimal digits");
  refused("\"636166e9\"", "\"636166zz\"", "classBytes[0]: position 6");
}

TEST(ExportedModelTest, TasksThatDoNotFitAreRefused) {
  const ExportedModel classes = Model("mlp", model::Task::kMultiClass);
  const ExportedModel binary = Model("mlp");
  const auto refused = [&](const ExportedModel& model, const std::string& from, const std::string& to,
                           const std::string& message) {
    EXPECT_THAT(ParseExportedModel(Replaced(ModelJson(model, {}), from, to), SchemaJson(model)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused(binary, "\"binary\"", "\"ranking\"", "task: 'ranking' is unknown");
  refused(binary, "\"binary\"", "\"multiClass\"", "classes: has 0 names");
  refused(binary, "\"binary\"", "\"multiLabel\"", "task: 'multiLabel' does not fit the label of schema.json");
  refused(classes, "\"multiClass\"", "\"regression\"", "the number of inputs is 3, but must be 1");
  refused(classes, "\"a\",", "", "the number of inputs is 3, but must be 2");
  refused(binary, "\"logLoss\"", "\"hinge\"", "loss: 'hinge' is unknown");
}

TEST(ExportedModelTest, DamagedFilesAreRefusedWithTheFieldsName) {
  const ExportedModel model = Model("ctrdnn");
  const std::string layers = ModelJson(model, {});
  const std::string schema = SchemaJson(model);
  const auto refused = [&](const std::string& m, const std::string& s, const std::string& message) {
    EXPECT_THAT(ParseExportedModel(m, s), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused("{", schema, "model.json: the file is not a JSON object");
  refused(layers, "[]", "schema.json: the file is not a JSON object");
  refused(Replaced(layers, "\"formatVersion\": 1", "\"formatVersion\": 3"), schema,
          "model.json: formatVersion 3 is not supported, this program reads versions up to 2");
  refused(Replaced(layers, "\"formatVersion\": 1", "\"formatVersion\": 0"), schema, "formatVersion 0 is not supported");
  refused(layers, Replaced(schema, "\"formatVersion\": 1", "\"formatVersion\": 2"),
          "schema.json: formatVersion 2 is not supported, this program reads version 1");
  refused(Replaced(layers, "\"kind\": \"Loss\"", "\"kind\": \"Conv\""), schema, "layers[3].kind: 'Conv' is unknown");
  refused(Replaced(layers, "\"outputs\": 8", "\"outputs\": 9"), schema, "layers[1]: outputs is 9, but must be 8");
  refused(Replaced(layers, "\"activation\": \"relu\"", "\"activation\": \"gelu\""), schema, "'gelu' is unknown");
  refused(layers, Replaced(schema, "\"rows\": 100", "\"rows\": 99"), "the table has 100 rows");
  refused(layers, Replaced(schema, "\"column\": 3", "\"column\": -3"), "categorical[1].column: -3 is out of range");
  refused(layers, Replaced(schema, "\"mean\": 0.10000000149011612", "\"mean\": \"x\""), "numeric[0].mean");
  refused(Replaced(layers, "\"shape\": [\n            100,", "\"shape\": [\n            4611686018427387904,"), schema,
          "out of range");
}

TEST(ExportedModelTest, HeadersAreAligned) {
  const auto tensors = TensorsOf(Model("ctrdnn").graph);
  EXPECT_EQ(SafetensorsHeader(tensors).size() % 64, 0U);
  for (const ExportedTensor& tensor : tensors) {
    const std::string header = NumpyHeader(tensor);
    EXPECT_EQ(header.size() % 64, 0U);
    EXPECT_EQ(header.back(), '\n');
    EXPECT_THAT(header, HasSubstr("'shape': (" + std::to_string(tensor.shape[0]) + ", ")) << tensor.name;
  }
}

}  // namespace
}  // namespace medley::worker
