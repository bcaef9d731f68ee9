// Compares the layer tables in examples/models with the numbers of the design, and checks their consistency: parameters
// follow from attributes, bytes from parameters, inputs from outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/model/model.h"
#include "scheduler-service/profile/work.h"
#include "tests/unit/scheduler-service/profile/load_model.h"

namespace medley::sched {
namespace {

const std::vector<std::string> kModelTables = {"ctrdnn-8",    "ctrdnn-12", "ctrdnn-16", "ctrdnn-20",
                                               "matchnet-16", "2emb-10",   "nce-5"};

std::vector<double> Parameters(const model::Model& model) {
  std::vector<double> found;
  for (const model::Layer& layer : model.layers) {
    const auto work = WorkOf(layer);
    EXPECT_TRUE(work.ok()) << base::ToString(work.status());
    found.push_back(work.ok() ? work->parameters : -1);
  }
  return found;
}

TEST(ModelTablesTest, Ctrdnn16IsTheTable) {
  EXPECT_EQ(Parameters(LoadModel("ctrdnn-16")),
            (std::vector<double>{9000009, 0, 0, 126976, 262656, 131328, 65792, 65792, 65792, 32896, 16512, 16512, 16512,
                                 8256, 130, 0}));
}

TEST(ModelTablesTest, Matchnet16IsTheTable) {
  EXPECT_EQ(Parameters(LoadModel("matchnet-16")),
            (std::vector<double>{809856, 809856, 99072, 99072, 0, 0, 16512, 16512, 0, 168, 0, 0, 63744, 8256, 130, 0}));
}

TEST(ModelTablesTest, TwoEmb10IsTheTable) {
  EXPECT_EQ(Parameters(LoadModel("2emb-10")),
            (std::vector<double>{16000000, 16000000, 0, 0, 0, 8448, 32896, 8256, 130, 0}));
}

TEST(ModelTablesTest, Nce5IsTheTable) {
  EXPECT_EQ(Parameters(LoadModel("nce-5")), (std::vector<double>{106215300, 106215300, 354051, 0, 0}));
}

TEST(ModelTablesTest, CtrdnnDenseWork) {
  const model::Model model = LoadModel("ctrdnn-16");
  double dense = 0;
  double training_flops = 0;
  for (const model::Layer& layer : model.layers) {
    if (layer.kind != "FULLY_CONNECTED") continue;
    const LayerWork work = *WorkOf(layer);
    dense += work.parameters;
    training_flops += work.forward_flops * (1 + work.backward_factor);
  }
  EXPECT_EQ(dense, 809154);
  EXPECT_NEAR(training_flops, 4.84e6, 0.02e6);  // the table does not count biases
}

TEST(ModelTablesTest, CtrdnnVariantsDifferInFullyConnectedLayersOnly) {
  for (const int layers : {8, 12, 16, 20}) {
    const model::Model model = LoadModel("ctrdnn-" + std::to_string(layers));
    ASSERT_EQ(std::ssize(model.layers), layers);
    const auto dense = std::count_if(model.layers.begin(), model.layers.end(),
                                     [](const model::Layer& l) { return l.kind == "FULLY_CONNECTED"; });
    EXPECT_EQ(dense, layers - 4);
  }
}

TEST(ModelTablesTest, BytesFollowFromAttributes) {
  for (const std::string& name : kModelTables) {
    SCOPED_TRACE(name);
    const model::Model model = LoadModel(name);
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(std::to_string(model.layers.size()), name.substr(name.rfind('-') + 1));
    const std::vector<double> parameters = Parameters(model);
    for (size_t i = 0; i < model.layers.size(); ++i) {
      const model::Layer& layer = model.layers[i];
      SCOPED_TRACE(layer.name);
      EXPECT_EQ(layer.weight_bytes, 4 * parameters[i]);
      EXPECT_EQ(layer.sparse, layer.kind == "EMBEDDING");
      if (layer.kind == "EMBEDDING") {
        EXPECT_EQ(layer.input_bytes, 8 * WorkOf(layer)->gathered_rows);
        EXPECT_EQ(layer.output_bytes, WorkOf(layer)->gathered_bytes);
      }
      if (layer.kind == "FULLY_CONNECTED") {
        EXPECT_EQ(layer.input_bytes, 4 * std::stod(layer.attributes.at("width")));
        EXPECT_EQ(layer.output_bytes, 4 * std::stod(layer.attributes.at("units")));
      }
    }
  }
}

// The input bytes of a layer are the output bytes of its inputs. CTRDNN's concat adds 13 numbers of the sample, and
// MATCHNET's reads the outputs of its towers for the cosine without another copy.
TEST(ModelTablesTest, InputsAreOutputs) {
  for (const std::string& name : kModelTables) {
    SCOPED_TRACE(name);
    const model::Model model = LoadModel(name);
    for (size_t i = 1; i < model.layers.size(); ++i) {
      const model::Layer& layer = model.layers[i];
      if (layer.kind == "EMBEDDING") continue;  // ids come from the data
      SCOPED_TRACE(layer.name);
      std::vector<int> inputs = layer.inputs;
      if (inputs.empty()) inputs = {static_cast<int>(i) - 1};
      double bytes = 0;
      for (const int input : inputs) bytes += model.layers[static_cast<size_t>(input)].output_bytes;
      if (layer.attributes.count("numerics") > 0) bytes += 4 * std::stod(layer.attributes.at("numerics"));
      EXPECT_EQ(layer.input_bytes, bytes);
    }
  }
}

// `medley model inspect --table` counts the operations of a model from PyTorch.
TEST(WorkOfTest, CountedOperationsDecide) {
  model::Layer layer;
  layer.name = "features.0";
  layer.kind = "CONV2D";
  layer.weight_bytes = 400;
  layer.input_bytes = 100;
  layer.output_bytes = 200;
  layer.attributes = {{"flops", "5000"}, {"calls", "3"}, {"activationBytes", "600"}};
  const auto work = WorkOf(layer);
  ASSERT_TRUE(work.ok());
  EXPECT_EQ(work->forward_flops, 5000);
  EXPECT_EQ(work->backward_factor, 2);
  EXPECT_EQ(work->forward_bytes, 100 + 2 * 600);
  EXPECT_EQ(work->activation_bytes, 600);
  EXPECT_EQ(work->forward_launches, 3);
  layer.attributes = {{"flops", "0"}};
  layer.weight_bytes = 0;
  EXPECT_EQ(WorkOf(layer)->forward_flops, 0);
  EXPECT_EQ(WorkOf(layer)->backward_factor, 1);
  layer.attributes = {{"flops", "many"}};
  EXPECT_FALSE(WorkOf(layer).ok());
}

TEST(WorkOfTest, NamesTheAttributeThatIsMissingOrBad) {
  model::Layer layer;
  layer.name = "gru";
  layer.kind = "RECURRENT";
  EXPECT_THAT(base::Message(WorkOf(layer).status()), testing::HasSubstr("attributes.sequence is required"));
  layer.attributes["sequence"] = "12x";
  EXPECT_THAT(base::Message(WorkOf(layer).status()), testing::HasSubstr("must be a number above 0, is '12x'"));
  layer.attributes["sequence"] = "nan";
  EXPECT_FALSE(WorkOf(layer).ok());
}

// The worker's tables have no `width`, so weightBytes is used.
TEST(WorkOfTest, WeightBytesStandInForAttributes) {
  model::Layer layer;
  layer.kind = "FULLY_CONNECTED";
  layer.weight_bytes = 4 * 400 * 401;
  layer.attributes["units"] = "400";
  EXPECT_EQ(WorkOf(layer)->forward_flops, 2.0 * 400 * 401);
}

}  // namespace
}  // namespace medley::sched
