// Built-in models on a device against the CPU's block: every layer, task and optimizer, the models of examples/zoo, and
// random ones. In the build with CUDA the device is a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "common/base/testing/soak.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/aten/layer_chain.h"
#include "tests/unit/worker/zoo/zoo_jobs.h"
#include "worker/device/testing/needs_gpu.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;

constexpr int kLayerSamples = 24;
constexpr double kMost = 1e-5;

Graph LayerGraph(const model::JobSpec& job, int classes = 0) {
  const absl::StatusOr<Graph> graph = BuildGraph(job, classes);
  EXPECT_TRUE(graph.ok()) << base::ToString(graph.status());
  return *graph;
}

// The same steps on the CPU and on the device: losses, gradients, parameters and predictions of both.
class Twins {
 public:
  // The blocks of the first are on the device.
  Twins(const Graph& graph, const LayerChain::Setup& setup)
      : graph_(graph), is_(graph, setup), expected_(graph, WithoutDevice(setup)) {}

  // After `steps` steps that are applied.
  void Expect(int64_t steps, double most = kMost, bool weighted = false) {
    const bool updates = steps > 0;
    for (int64_t step = 1; step <= std::max<int64_t>(1, steps); ++step) {
      const Batch batch = SomeSamples(graph_, static_cast<uint64_t>(step + 4), kLayerSamples, weighted);
      const int micros = step % 3 == 0 ? 1 : 2;
      ASSERT_THAT(is_.Step(step, batch, micros, updates), IsOk()) << graph_.name;
      ASSERT_THAT(expected_.Step(step, batch, micros, updates), IsOk());
      const double loss = expected_.Loss();
      EXPECT_NEAR(is_.Loss(), loss, most * std::abs(loss)) << "step " << step;
      for (size_t b = 0; b < is_.blocks().size(); ++b) {
        EXPECT_EQ(is_.blocks()[b]->LossSamples(0), expected_.blocks()[b]->LossSamples(0));
      }
      Near(is_.row_gradients(), expected_.row_gradients(), most, "gradients of rows");
      if (!updates) Near(is_.Part(DensePart::kGradient), expected_.Part(DensePart::kGradient), most, "gradients");
    }
    Near(is_.Part(DensePart::kWeights), expected_.Part(DensePart::kWeights), most, "weights");
    Near(is_.Part(DensePart::kState), expected_.Part(DensePart::kState), most, "state");
    Near(is_.Rows(), expected_.Rows(), most, "rows");
    const Batch batch = SomeSamples(graph_, 77, kLayerSamples, weighted);
    const auto logits = is_.Infer(batch), wanted = expected_.Infer(batch);
    ASSERT_THAT(logits, IsOk());
    ASSERT_THAT(wanted, IsOk());
    Near({{"logits", *logits}}, {{"logits", *wanted}}, most, "predictions");
  }

  double worst() const { return worst_; }
  LayerChain& device() { return is_; }
  LayerChain& host() { return expected_; }

 private:
  static LayerChain::Setup WithoutDevice(LayerChain::Setup setup) {
    setup.on_device.assign(setup.on_device.size(), false);
    return setup;
  }
  void Near(const LayerChain::Named& is, const LayerChain::Named& expected, double most, const std::string& what) {
    worst_ = std::max(worst_, ExpectNear(is, expected, most, what));
  }

  const Graph graph_;
  LayerChain is_, expected_;
  double worst_ = 0;
};

class OnTheDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::BuiltForGpus()) MEDLEY_NEEDS_GPU();
  }
};

// --- Layers

// The layers of an example's job, whose samples have 14 ids and 6 numbers.
model::JobSpec JobWith(std::vector<model::LayerSpec> layers) {
  model::JobSpec job = testing::ZooJob("dlrm");
  job.model.layers = {{.name = "numbers", .kind = "Numerics"},
                      {.name = "e", .kind = "Embedding", .out = 6, .fields = 5, .numerics = false},
                      {.name = "f", .kind = "Embedding", .out = 6, .first = 5, .fields = 5, .numerics = false}};
  job.model.layers.insert(job.model.layers.end(), layers.begin(), layers.end());
  // What no layer takes is taken here, so that every layer is used.
  std::vector<std::string> rest;
  for (const model::LayerSpec& layer : job.model.layers) rest.push_back(layer.name);
  for (const model::LayerSpec& layer : layers) {
    for (const std::string& input : layer.inputs) std::erase(rest, input);
    if (layer.kind == "Dropout") std::erase(rest, layer.name);
  }
  if (rest.size() > 1) job.model.layers.push_back({.name = "all", .kind = "Concat", .inputs = rest});
  job.model.layers.push_back({.name = "out", .kind = "FullyConnected", .out = 1});
  job.model.layers.push_back({.name = "loss", .kind = "Loss"});
  return job;
}

struct OneLayer {
  std::string name;
  std::vector<model::LayerSpec> layers;
};

class LayerOnTheDevice : public OnTheDevice, public ::testing::WithParamInterface<OneLayer> {};

TEST_P(LayerOnTheDevice, HasTheCpusNumbers) {
  const Graph graph = LayerGraph(JobWith(GetParam().layers));
  Twins(graph, {.on_device = {true}}).Expect(0);
  Twins trained(graph, {.on_device = {true}});
  trained.Expect(5);
  std::printf("%-22s largest difference %.1e\n", GetParam().name.c_str(), trained.worst());
}

model::LayerSpec Of(const std::string& kind, std::vector<std::string> inputs, int dim = 0,
                    const std::string& combine = "") {
  return {.name = "x", .kind = kind, .inputs = std::move(inputs), .dim = dim, .combine = combine};
}
model::LayerSpec Connected(const std::string& activation) {
  return {.name = "x", .kind = "FullyConnected", .out = 7, .activation = activation, .inputs = {"e"}};
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, LayerOnTheDevice,
    ::testing::Values(
        OneLayer{"Linear", {Connected("")}}, OneLayer{"Relu", {Connected("relu")}},
        OneLayer{"Sigmoid", {Connected("sigmoid")}}, OneLayer{"Tanh", {Connected("tanh")}},
        OneLayer{"Dropout", {Connected("relu"), {.name = "d", .kind = "Dropout", .fraction = 0.3}}},
        OneLayer{"DropoutOfTanh", {Connected("tanh"), {.name = "d", .kind = "Dropout", .fraction = 0.5}}},
        OneLayer{"OneInput",
                 {{.name = "y", .kind = "FullyConnected", .out = 1, .inputs = {"e"}},
                  {.name = "x", .kind = "FullyConnected", .out = 4, .inputs = {"y"}}}},
        OneLayer{"Concat", {Of("Concat", {"numbers", "e", "f"})}}, OneLayer{"Add", {Of("Add", {"e", "f"})}},
        OneLayer{"AddOfThree",
                 {{.name = "s", .kind = "Slice", .out = 6, .inputs = {"e"}, .dim = 30, .first = 3},
                  {.name = "t", .kind = "Slice", .out = 6, .inputs = {"f"}, .dim = 30},
                  Of("Add", {"numbers", "s", "t"})}},
        OneLayer{"Multiply", {Of("Multiply", {"e", "f"})}},
        OneLayer{"PoolSum", {Of("Pool", {"numbers", "e"}, 6, "sum")}},
        OneLayer{"PoolMean", {Of("Pool", {"e", "f"}, 6, "mean")}},
        OneLayer{"PoolMax", {Of("Pool", {"e", "f"}, 6, "max")}},
        OneLayer{"Slice", {{.name = "x", .kind = "Slice", .out = 2, .inputs = {"e"}, .dim = 6, .first = 3}}},
        OneLayer{"Interaction", {Of("Interaction", {"numbers", "e", "f"}, 6)}},
        OneLayer{"InteractionOfOne", {Of("Interaction", {"e"}, 3)}},
        OneLayer{"FactorizationMachine", {Of("FactorizationMachine", {"numbers", "e", "f"}, 6)}},
        OneLayer{"Match", {Of("Match", {"numbers", "f"}, 6)}}, OneLayer{"MatchMany", {Of("Match", {"e", "f"}, 6)}},
        OneLayer{"InnerProduct", {Of("InnerProduct", {"e", "f"}, 6)}},
        OneLayer{"Cosine", {Of("Cosine", {"e", "f"}, 6)}}, OneLayer{"CosineOfAll", {Of("Cosine", {"e", "f"})}},
        OneLayer{"Cross", {Of("Cross", {"e"})}},
        OneLayer{"TwoCross", {{.name = "c", .kind = "Cross", .inputs = {"e"}}, Of("Cross", {"e", "c"})}},
        OneLayer{"EmbeddingSum",
                 {{.name = "x", .kind = "Embedding", .out = 5, .first = 10, .combine = "sum", .numerics = true}}}),
    [](const auto& tested) { return tested.param.name; });

// A cosine of a vector of zeros, whose norm has no gradient.
TEST_F(OnTheDevice, ACosineOfZerosHasTheCpusGradient) {
  const Graph graph = LayerGraph(JobWith({Of("Cosine", {"e", "f"}, 6)}));
  Twins twins(graph, {.on_device = {true}});
  const Floats zeros(static_cast<size_t>(LayerChain::kTableRows * 6));
  for (LayerChain* chain : {&twins.device(), &twins.host()}) chain->SetRowsOf("e", zeros);
  twins.Expect(0);
}

// --- Models and tasks

struct NamedModel {
  std::string name, model;
  model::Task task = model::Task::kBinary;
  double dropout = 0;
  bool weighted = false;
  std::string loss = "";
};

class ModelOnTheDevice : public OnTheDevice, public ::testing::WithParamInterface<NamedModel> {};

TEST_P(ModelOnTheDevice, TrainsAsOnTheCpu) {
  const NamedModel& tested = GetParam();
  model::JobSpec job = testing::ZooJob("dlrm");
  job.model = {};
  job.model.name = tested.model;
  job.model.embedding_dim = 3;
  job.model.embedding_rows = 100;
  job.model.hidden = tested.model == "residual" ? std::vector<int>{8, 5, 8, 5, 8} : std::vector<int>{8, 5};
  job.model.dropout = tested.dropout;
  job.model.loss = tested.loss;
  model::SchemaSpec& schema = job.data.schema;
  schema.task = tested.task;
  if (tested.task == model::Task::kMultiClass) schema.label_classes = {"a", "b", "c"};
  if (tested.task != model::Task::kBinary) schema.label_positive.clear();
  if (tested.task == model::Task::kMultiLabel) {
    schema.label_column = -1;
    schema.label_columns = {14, 15};
  }
  const Graph graph = LayerGraph(job);
  Twins(graph, {.on_device = {true}}).Expect(0, kMost, tested.weighted);
  Twins trained(graph, {.on_device = {true}});
  trained.Expect(20, kMost, tested.weighted);
  std::printf("%-22s largest difference %.1e\n", tested.name.c_str(), trained.worst());
}

INSTANTIATE_TEST_SUITE_P(Models, ModelOnTheDevice,
                         ::testing::Values(NamedModel{"ctrdnn", "ctrdnn"}, NamedModel{"mlp", "mlp"},
                                           NamedModel{"logistic", "logistic"}, NamedModel{"residual", "residual"},
                                           NamedModel{"two_tower", "two-tower"},
                                           NamedModel{"dropout", "ctrdnn", model::Task::kBinary, 0.3},
                                           NamedModel{"weights", "ctrdnn", model::Task::kBinary, 0, true},
                                           NamedModel{"classes", "ctrdnn", model::Task::kMultiClass, 0, true},
                                           NamedModel{"classes_logistic", "logistic", model::Task::kMultiClass},
                                           NamedModel{"labels", "ctrdnn", model::Task::kMultiLabel},
                                           NamedModel{"squared", "ctrdnn", model::Task::kRegression},
                                           NamedModel{"absolute", "ctrdnn", model::Task::kRegression, 0, true, "mae"}),
                         [](const auto& tested) { return tested.param.name; });

class ZooOnTheDevice : public OnTheDevice, public ::testing::WithParamInterface<std::string> {};

TEST_P(ZooOnTheDevice, TrainsAsOnTheCpu) {
  const Graph graph = LayerGraph(testing::ZooJob(GetParam()));
  Twins(graph, {.on_device = {true}}).Expect(0);
  Twins trained(graph, {.on_device = {true}, .optimizer = *MakeOptimizer("sgd", 0.05)});
  trained.Expect(20);
  // Every second block on the device.
  const int count = static_cast<int>(graph.operations.size());
  const std::vector<int> cuts = {count / 3, 2 * count / 3};
  Twins mixed(graph, {.cuts = cuts, .on_device = {true, false, true}});
  mixed.Expect(3);
  std::printf("%-16s largest difference %.1e, in three blocks %.1e\n", GetParam().c_str(), trained.worst(),
              mixed.worst());
}

INSTANTIATE_TEST_SUITE_P(Examples, ZooOnTheDevice, ::testing::ValuesIn(testing::ZooNames()), [](const auto& tested) {
  std::string name = tested.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

// --- Optimizers

struct LayerRule {
  std::string name;
  Optimizer optimizer;
};

std::vector<LayerRule> LayerRules() {
  std::vector<LayerRule> rules;
  for (const char* name : {"sgd", "adagrad", "adam", "adamw", "rmsprop", "ftrl"}) {
    rules.push_back({name, *MakeOptimizer(name, 0.01)});
  }
  Optimizer momentum = *MakeOptimizer("sgd", 0.02);
  momentum.kind = OptimizerKind::kMomentum;
  momentum.momentum = 0.9F;
  momentum.weight_decay = 0.01F;
  rules.push_back({"momentum", momentum});
  return rules;
}

class RuleOnTheDevice : public OnTheDevice, public ::testing::WithParamInterface<LayerRule> {};

// Rules that divide a gradient by its size make of the last bit of one near 0 a step as of a large one, and a unit at
// the kink of its relu has a gradient or none: epsilon bounds the former, tanh avoids the latter.
TEST_P(RuleOnTheDevice, TwentyStepsAreTheCpus) {
  model::JobSpec job = testing::ZooJob("wide-and-deep");
  for (model::LayerSpec& layer : job.model.layers) {
    if (layer.activation == "relu") layer.activation = "tanh";
  }
  Optimizer bounded = GetParam().optimizer;
  bounded.epsilon = 1e-3F;
  if (bounded.kind == OptimizerKind::kAdagrad) bounded.initial_state = 0.01F;
  Twins trained(LayerGraph(job), {.on_device = {true}, .optimizer = bounded});
  trained.Expect(20);
  std::printf("%-16s largest difference %.1e\n", GetParam().name.c_str(), trained.worst());
}

// Rows that do not change, under a weight decay.
TEST_P(RuleOnTheDevice, FixedRowsStayFixed) {
  model::JobSpec job = testing::ZooJob("dlrm");
  job.model = {};
  job.model.name = "logistic";
  Optimizer decaying = GetParam().optimizer;
  decaying.weight_decay = 0.1F;
  Twins trained(LayerGraph(job), {.on_device = {true}, .optimizer = decaying});
  trained.Expect(4);
  EXPECT_EQ(trained.device().Part(DensePart::kWeights).at("fc_out.weight").front(), 1);
}

INSTANTIATE_TEST_SUITE_P(Rules, RuleOnTheDevice, ::testing::ValuesIn(LayerRules()),
                         [](const auto& tested) { return tested.param.name; });

// --- Properties

class RandomJob {
 public:
  explicit RandomJob(uint64_t seed) : rng_(seed) {
    const int layers = 2 + static_cast<int>(rng_.Below(7));
    for (int i = 0; i < layers; ++i) Add("x" + std::to_string(i));
  }

  Graph Make() { return LayerGraph(JobWith(layers_)); }

  LayerChain::Setup Blocks(const Graph& graph) {
    LayerChain::Setup setup;
    for (int i = 1; i < static_cast<int>(graph.operations.size()); ++i) {
      if (rng_.Below(3) == 0) setup.cuts.push_back(i);
    }
    for (size_t b = 0; b <= setup.cuts.size(); ++b) setup.on_device.push_back(rng_.Below(3) > 0);
    return setup;
  }

 private:
  struct Known {
    std::string name;
    int width = 0;
  };
  // A layer whose output is `width` wide, or, with 0, is vectors of 6 numbers.
  const Known& Pick(int width = 0) {
    std::vector<size_t> fitting;
    for (size_t i = 0; i < known_.size(); ++i) {
      if (width == 0 ? known_[i].width % 6 == 0 : known_[i].width == width) fitting.push_back(i);
    }
    return known_[fitting[rng_.Below(fitting.size())]];
  }
  void Take(model::LayerSpec layer, int width) {
    known_.push_back({layer.name, width});
    layers_.push_back(std::move(layer));
  }
  // Layers take different inputs, in their order.
  std::pair<Known, Known> PickTwo() {
    const Known a = Pick();
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Known b = Pick(a.width);
      if (b.name == a.name) continue;
      const auto first =
          std::ranges::find_if(known_, [&](const Known& one) { return one.name == a.name || one.name == b.name; });
      return first->name == a.name ? std::pair{a, b} : std::pair{b, a};
    }
    return {{"e", 30}, {"f", 30}};
  }

  void Add(const std::string& name) {
    const Known one = Pick();
    const auto [a, b] = PickTwo();
    const auto vectors = [](const Known& known) { return known.width / 6; };
    switch (rng_.Below(11)) {
      case 0:
        return Take({.name = name, .kind = "Cross", .inputs = {one.name}}, one.width);
      case 1:
        return Take({.name = name, .kind = "Add", .inputs = {a.name, b.name}}, a.width);
      case 2:
        return Take({.name = name, .kind = "Multiply", .inputs = {a.name, b.name}}, a.width);
      case 3:
        return Take({.name = name, .kind = "Concat", .inputs = {a.name, b.name}}, a.width + b.width);
      case 4:
        return Take({.name = name,
                     .kind = "Pool",
                     .inputs = {a.name, b.name},
                     .dim = 6,
                     .combine = std::array{"sum", "mean", "max"}[rng_.Below(3)]},
                    6);
      case 5: {
        const int count = vectors(a) + vectors(b);
        return Take({.name = name, .kind = "Interaction", .inputs = {a.name, b.name}, .dim = 6},
                    count * (count - 1) / 2);
      }
      case 6:
        return Take({.name = name, .kind = "FactorizationMachine", .inputs = {a.name, b.name}, .dim = 6}, 1);
      case 7:
        return Take({.name = name, .kind = "Match", .inputs = {a.name, b.name}, .dim = 6}, vectors(a) * vectors(b));
      case 8:
        return Take({.name = name,
                     .kind = rng_.Below(2) == 0 ? "InnerProduct" : "Cosine",
                     .inputs = {a.name, b.name},
                     .dim = 6},
                    vectors(a));
      case 9:
        return Take({.name = name,
                     .kind = "Slice",
                     .out = 3,
                     .inputs = {one.name},
                     .dim = 6,
                     .first = static_cast<int>(rng_.Below(4))},
                    vectors(one) * 3);
      default: {
        const int out = rng_.Below(2) == 0 ? 6 : 12;
        Take({.name = name,
              .kind = "FullyConnected",
              .out = out,
              .activation = std::array{"", "sigmoid", "tanh", "relu"}[rng_.Below(4)],
              .inputs = {one.name}},
             out);
        if (rng_.Below(2) == 0) layers_.push_back({.name = name + "d", .kind = "Dropout", .fraction = 0.25});
      }
    }
  }

  base::Rng rng_;
  std::vector<Known> known_ = {{"numbers", 6}, {"e", 30}, {"f", 30}};
  std::vector<model::LayerSpec> layers_;
};

TEST_F(OnTheDevice, RandomModelsInRandomBlocksTrainAsOnTheCpu) {
  const int rounds = base::Rounds(40, 400);
  double worst = 0;
  for (int seed = 1; seed <= rounds && !HasFailure(); ++seed) {
    RandomJob job(static_cast<uint64_t>(seed));
    const Graph graph = job.Make();
    SCOPED_TRACE("seed " + std::to_string(seed));
    const LayerChain::Setup setup = job.Blocks(graph);
    Twins twins(graph, setup);
    twins.Expect(0);
    worst = std::max(worst, twins.worst());
  }
  std::printf("%d random models: largest difference %.1e\n", rounds, worst);
}

// What one side has learned, the other continues.
TEST_F(OnTheDevice, TrainingMovesToTheDeviceAndBack) {
  const Graph graph = LayerGraph(testing::ZooJob("deepfm"));
  const LayerChain::Setup on{.on_device = {true}, .optimizer = *MakeOptimizer("adam", 0.01)};
  LayerChain::Setup off = on;
  off.on_device = {false};
  LayerChain first(graph, off), second(graph, on), third(graph, off), stayed(graph, off);
  const auto samples = [&](int64_t step) { return SomeSamples(graph, static_cast<uint64_t>(step), kLayerSamples); };
  LayerChain* moving = &first;
  for (int64_t step = 1; step <= 15; ++step) {
    if (step == 6) first.CopyTo(second, step - 1);
    if (step == 6) moving = &second;
    if (step == 11) second.CopyTo(third, step - 1);
    if (step == 11) moving = &third;
    ASSERT_THAT(moving->Step(step, samples(step)), IsOk());
    ASSERT_THAT(stayed.Step(step, samples(step)), IsOk());
    EXPECT_NEAR(moving->Loss(), stayed.Loss(), kMost * stayed.Loss()) << "step " << step;
  }
  ExpectNear(third.Part(DensePart::kWeights), stayed.Part(DensePart::kWeights), kMost, "weights");
  ExpectNear(third.Part(DensePart::kState), stayed.Part(DensePart::kState), kMost, "state");
}

// A step that is undone and repeated.
TEST_F(OnTheDevice, AnUndoneStepIsRepeated) {
  const Graph graph = LayerGraph(testing::ZooJob("dcn-v2"));
  LayerChain chain(graph, {.on_device = {true}});
  const Batch batch = SomeSamples(graph, 5, kLayerSamples);
  ASSERT_THAT(chain.Step(1, batch), IsOk());
  const LayerChain::Named before = chain.Part(DensePart::kWeights);
  ASSERT_THAT(chain.Step(2, batch), IsOk());
  ASSERT_THAT(chain.blocks().front()->UndoTo(1), IsOk());
  EXPECT_EQ(chain.Part(DensePart::kWeights), before);
  EXPECT_EQ(chain.blocks().front()->AppliedStep(), 1);
  ASSERT_THAT(chain.Step(2, batch, 1), IsOk());
}

}  // namespace
}  // namespace medley::worker::aten
