// Analytic profiles: the formulas for a machine with round numbers, the shares that divide, the bytes that cross a cut,
// and properties for all models and datasheets.
#include "scheduler-service/profile/analytic.h"
#include "common/model/model.h"
#include "common/model/planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/profile/work.h"
#include "tests/unit/scheduler-service/profile/load_model.h"

namespace medley::sched {
namespace {

using base::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kModels = {"ctrdnn-8",    "ctrdnn-12", "ctrdnn-16", "ctrdnn-20",
                                          "matchnet-16", "2emb-10",   "nce-5"};

// On this machine, matrix products are never bound by memory bandwidth.
Hardware Round() {
  Hardware hardware;
  hardware.name = "round";
  hardware.cls = model::ResourceClass::kCpu;
  hardware.flops = {{"fp32", 1e9}};
  hardware.memory_bytes_per_second = 1e18;
  hardware.network_bytes_per_second = 1e6;
  hardware.launch_seconds = 1e-4;
  return hardware;
}

model::Model TwoDense() {
  model::Model model;
  for (const char* name : {"a", "b"}) {
    model::Layer layer;
    layer.name = name;
    layer.kind = "FULLY_CONNECTED";
    layer.attributes = {{"width", "99"}, {"units", "100"}};
    layer.input_bytes = 4 * 99;
    layer.output_bytes = 4 * 100;
    layer.weight_bytes = 4 * 100 * 100;
    model.layers.push_back(layer);
  }
  return model;
}

TEST(AnalyticTest, DenseLayerByHand) {
  model::Model model = TwoDense();
  ASSERT_THAT(AddAnalyticProfiles(model, "type", Round(), 10), IsOk());
  const model::LayerProfile& p = model.layers[0].profiles.at(0);
  EXPECT_EQ(p.resource_type, "type");
  EXPECT_EQ(p.origin, "analytic");
  // 10 samples x 6 operations x 10,000 weights at 0.9e9 a second; 8 launches.
  EXPECT_NEAR(p.compute_seconds, 10 * 6 * 1e4 / 0.9e9 + 8e-4, 1e-9);
  EXPECT_NEAR(p.compute_parallel, 6e5 / 0.9e9 / (6e5 / 0.9e9 + 8e-4), 1e-6);
  EXPECT_NEAR(p.sync_seconds, 2 * 4e4 / 1e6 + 1e-4, 1e-9);
  EXPECT_NEAR(p.transfer_seconds, 2 * 10 * 400 / 1e6 + 1e-4, 1e-9);
  EXPECT_NEAR(p.comm_parallel, 8e-3 / (8e-3 + 1e-4 + 8e-2 + 1e-4), 1e-6);
  EXPECT_EQ(p.server_seconds, 0);
  EXPECT_EQ(p.activation_bytes, 400);
  EXPECT_EQ(model.layers[1].profiles.at(0).transfer_seconds, 0);  // the last layer sends nothing
}

TEST(AnalyticTest, ExistingProfilesAreKept) {
  model::Model model = TwoDense();
  model.layers[1].profiles.push_back({.resource_type = "type", .compute_seconds = 42, .origin = "measured"});
  ASSERT_THAT(AddAnalyticProfiles(model, "type", Round(), 10), IsOk());
  ASSERT_EQ(model.layers[1].profiles.size(), 1u);
  EXPECT_EQ(model.layers[1].profiles[0].compute_seconds, 42);
  EXPECT_EQ(model.layers[0].profiles.size(), 1u);
}

TEST(AnalyticTest, AnErrorChangesNothing) {
  model::Model model = TwoDense();
  model.layers[1].kind = "RECURRENT";
  const model::Model before = model;
  EXPECT_THAT(base::Message(AddAnalyticProfiles(model, "type", Round(), 10)),
              HasSubstr("model.layers[1]: layer 'b' (RECURRENT): attributes.sequence is required"));
  EXPECT_EQ(model, before);
  EXPECT_FALSE(AddAnalyticProfiles(model, "type", Round(), 0).ok());
}

// (1 - a) c + a c / k is the estimate for k units that each process 1 / k of the batch.
TEST(AnalyticTest, ParallelFractionsPredictSmallerBatches) {
  const auto catalog = HardwareCatalog::Builtin();
  ASSERT_THAT(catalog, IsOk());
  constexpr double kBatch = 4096;
  for (const Hardware& hardware : catalog->all()) {
    model::Model whole = LoadModel("ctrdnn-16");
    ASSERT_THAT(AddAnalyticProfiles(whole, "t", hardware, kBatch), IsOk());
    for (const double k : {2.0, 16.0, 256.0}) {
      model::Model part = LoadModel("ctrdnn-16");
      ASSERT_THAT(AddAnalyticProfiles(part, "t", hardware, kBatch / k), IsOk());
      for (size_t i = 0; i < whole.layers.size(); ++i) {
        const model::LayerProfile& p = whole.layers[i].profiles[0];
        const double predicted = p.compute_seconds * (1 - p.compute_parallel + p.compute_parallel / k);
        const double estimated = part.layers[i].profiles[0].compute_seconds;
        EXPECT_GE(predicted, estimated * (1 - 1e-9)) << hardware.name << " " << i << " k=" << k;  // a chord
        EXPECT_LE(predicted, estimated * 1.5) << hardware.name << " " << i << " k=" << k;
      }
    }
  }
}

TEST(AnalyticTest, EveryModelOnEveryMachineIsPlannable) {
  const auto catalog = HardwareCatalog::Builtin();
  ASSERT_THAT(catalog, IsOk());
  for (const std::string& name : kModels) {
    SCOPED_TRACE(name);
    model::Model model = LoadModel(name);
    for (const Hardware& hardware : catalog->all()) {
      ASSERT_THAT(AddAnalyticProfiles(model, hardware.name, hardware, 512), IsOk());
    }
    EXPECT_THAT(model::Validate(model), IsOk());
    for (const model::Layer& layer : model.layers) {
      ASSERT_EQ(layer.profiles.size(), catalog->all().size());
      for (const model::LayerProfile& p : layer.profiles) {
        EXPECT_GT(p.compute_seconds, 0);
        EXPECT_EQ(p.server_seconds > 0, layer.sparse);
      }
    }
  }
}

// A machine that is better in every respect is not estimated to be slower.
TEST(AnalyticTest, FasterMachinesAreFaster) {
  const auto catalog = HardwareCatalog::Builtin();
  ASSERT_THAT(catalog, IsOk());
  for (const std::string& name : kModels) {
    model::Model model = LoadModel(name);
    ASSERT_THAT(AddAnalyticProfiles(model, "v100", *catalog->Find("v100"), 512), IsOk());
    ASSERT_THAT(AddAnalyticProfiles(model, "h100", *catalog->Find("h100"), 512), IsOk());
    for (const model::Layer& layer : model.layers) {
      EXPECT_LE(layer.profiles[1].compute_seconds, layer.profiles[0].compute_seconds) << name << " " << layer.name;
      EXPECT_LE(layer.profiles[1].sync_seconds, layer.profiles[0].sync_seconds) << name << " " << layer.name;
    }
  }
}

TEST(CutBytesTest, ChainIsTheLayersOutput) {
  const model::Model model = LoadModel("ctrdnn-16");
  const std::vector<double> cut = CutBytes(model);
  for (size_t i = 0; i + 1 < cut.size(); ++i) EXPECT_EQ(cut[i], model.layers[i].output_bytes);
  EXPECT_EQ(cut.back(), 0);
}

TEST(CutBytesTest, GraphCountsWhatLaterLayersTake) {
  EXPECT_THAT(CutBytes(LoadModel("2emb-10")), ElementsAre(64, 128, 128, 128, 128, 1024, 512, 256, 8, 0));
  const std::vector<double> matchnet = CutBytes(LoadModel("matchnet-16"));
  EXPECT_EQ(matchnet[0], 79 * 128 * 4);                       // ids of the title come from the data
  EXPECT_EQ(matchnet[3], 2 * (79 + 99) * 128 * 4);            // the embeddings are taken by `match` as well
  EXPECT_EQ(matchnet[5], (79 + 99) * 128 * 4 + 2 * 128 * 4);  // and the towers' maxima
}

TEST(AnalyticRequestTest, ResourcesWithADatasheetGetProfiles) {
  const auto catalog = HardwareCatalog::Builtin();
  ASSERT_THAT(catalog, IsOk());
  model::PlanRequest request;
  request.model = LoadModel("nce-5");
  request.training.profile_batch_size = 512;
  request.training.samples_per_epoch = 1e6;
  request.resources = {{.name = "cores", .price_per_unit_hour = 0.04, .limit = 10, .hardware = "cpu"},
                       {.name = "other", .price_per_unit_hour = 0.04, .limit = 10}};
  request.server_type = "cores";
  ASSERT_THAT(AddAnalyticProfiles(request, *catalog), IsOk());
  for (const model::Layer& layer : request.model.layers) {
    ASSERT_EQ(layer.profiles.size(), 1u);
    EXPECT_EQ(layer.profiles[0].resource_type, "cores");
  }
  EXPECT_THAT(model::Validate(request), IsOk());
  request.resources[1].hardware = "v1000";
  EXPECT_THAT(base::Message(AddAnalyticProfiles(request, *catalog)),
              HasSubstr("resources[1].hardware: no datasheet is named 'v1000'; known datasheets: cpu,"));
}

}  // namespace
}  // namespace medley::sched
