// Observations and datasheets: validation errors, and conversion to protos and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "common/base/testing/status_matchers.h"
#include "common/model/convert.h"
#include "common/model/hardware.h"
#include "common/model/model.h"
#include "common/model/observation.h"
#include "common/model/prediction.h"
#include "common/model/resource.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::model {
namespace {

using base::IsOk;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

JobObservation Good() {
  JobObservation o;
  for (int l = 0; l < 3; ++l) {
    Layer layer;
    layer.name = "l" + std::to_string(l);
    layer.profiles = {{.resource_type = "cpu", .compute_seconds = 0.01, .compute_parallel = 0.9}};
    if (l > 0) layer.profiles.push_back({.resource_type = "gpu", .compute_seconds = 0.001, .compute_parallel = 0.5});
    o.request.model.layers.push_back(layer);
  }
  o.request.training.profile_batch_size = 64;
  o.request.training.samples_per_epoch = 1000;
  o.stages = {{0, 0, "cpu", 4, 0.003, 0.001}, {1, 2, "gpu", 1, 0.002, 0}};
  o.throughput = 20000;
  o.batch_size = 64;
  o.server_units = 1;
  o.usd_per_hour = 3;
  o.job_uid = "uid";
  o.generation = 2;
  return o;
}

TEST(ObservationTest, ValidObservationRoundTrips) {
  const JobObservation o = Good();
  EXPECT_THAT(Validate(o), IsOk());
  scheduler::v1::ObserveRequest wire;
  ToProto(o, wire);
  const auto back = FromProto(wire);
  ASSERT_THAT(back.status(), IsOk());
  EXPECT_EQ(back->request.model, o.request.model);
  EXPECT_EQ(back->stages, o.stages);
  EXPECT_EQ(back->throughput, o.throughput);
  EXPECT_EQ(back->batch_size, o.batch_size);
  EXPECT_EQ(back->server_units, o.server_units);
  EXPECT_EQ(back->usd_per_hour, o.usd_per_hour);
  EXPECT_EQ(back->job_uid, o.job_uid);
  EXPECT_EQ(back->generation, o.generation);
  EXPECT_THAT(Validate(*back), IsOk());
}

TEST(ObservationTest, InvalidFieldsAreRefusedWithTheirPath) {
  const std::vector<std::pair<std::function<void(JobObservation&)>, std::string>> cases = {
      {[](auto& o) { o.throughput = 0; }, "throughput: must be finite and greater than 0"},
      {[](auto& o) { o.throughput = kNan; }, "throughput: must be finite and greater than 0"},
      {[](auto& o) { o.batch_size = kInf; }, "batchSize: must be finite and greater than 0"},
      {[](auto& o) { o.batch_size = -1; }, "batchSize: must be finite and greater than 0"},
      {[](auto& o) { o.stages.clear(); }, "stages: must not be empty"},
      {[](auto& o) { o.stages[0].compute_seconds = 0; }, "stages[0].computeSeconds"},
      {[](auto& o) { o.stages[1].compute_seconds = kNan; }, "stages[1].computeSeconds"},
      {[](auto& o) { o.stages[1].comm_seconds = -0.1; }, "stages[1].commSeconds: must be finite and not negative"},
      {[](auto& o) { o.stages[1].first_layer = 2; }, "stages[1].firstLayer: must be 1"},
      {[](auto& o) { o.stages[1].last_layer = 3; }, "stages[1].lastLayer: must be in [1, 2]"},
      {[](auto& o) { o.stages.pop_back(); }, "stages: end with layer 0, the model has 3 layers"},
      {[](auto& o) { o.stages[0].resource_type = "gpu"; }, "stages[0].resourceType: layer 0 has no profile"},
      {[](auto& o) { o.stages[1].resource_type = "tpu"; }, "stages[1].resourceType: layer 1 has no profile"},
      {[](auto& o) { o.stages[0].units = 0; }, "stages[0].units: must be at least 1"},
      {[](auto& o) { o.server_units = -1; }, "serverUnits"},
      {[](auto& o) { o.usd_per_hour = kNan; }, "usdPerHour"},
      {[](auto& o) { o.request.model.layers.clear(); }, "request: model.layers: must not be empty"},
      {[](auto& o) { o.request.training.profile_batch_size = 0; }, "request: training.profileBatchSize"},
  };
  for (const auto& [spoil, message] : cases) {
    JobObservation o = Good();
    spoil(o);
    EXPECT_THAT(base::Message(Validate(o)), HasSubstr(message));
  }
}

TEST(PredictionTest, RoundTrips) {
  const Prediction p{7, 0.5, 0.98, 0.03, {{"cpu", 1.5, 0.9, 7}, {"gpu", 2, 1, 3}}};
  scheduler::v1::Prediction wire;
  ToProto(p, wire);
  EXPECT_EQ(FromProto(wire), p);
}

constexpr char kSheet[] = R"(
hardware:
  - name: a
    class: GPU
    flops: {fp32: 1.0e12}
    memoryBytes: 1.0e9
    memoryBytesPerSecond: 1.0e11
    networkBytesPerSecond: 1.0e9
    launchSeconds: 5.0e-6
    sources: {flops.fp32: x, memoryBytes: x, memoryBytesPerSecond: x, networkBytesPerSecond: x, launchSeconds: estimate}
)";

TEST(HardwareTest, ParsesAndRoundTrips) {
  const auto read = ParseHardware(kSheet);
  ASSERT_THAT(read.status(), IsOk());
  ASSERT_EQ(read->size(), 1u);
  const Hardware& a = read->front();
  EXPECT_EQ(a.cls, ResourceClass::kGpu);
  EXPECT_EQ(a.flops.at("fp32"), 1e12);
  EXPECT_EQ(a.launch_seconds, 5e-6);
  scheduler::v1::Hardware wire;
  ToProto(a, wire);
  const auto back = FromProto(wire, "hardware[0]");
  ASSERT_THAT(back.status(), IsOk());
  EXPECT_EQ(*back, a);
}

std::string With(std::string from, const std::string& to) {
  std::string text = kSheet;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(HardwareTest, BadSheetsNameTheField) {
  const auto message = [](const std::string& text) { return base::Message(ParseHardware(text).status()); };
  EXPECT_THAT(message(With("fp32: 1.0e12", "fp33: 1")), HasSubstr("hardware[0].flops.fp32: must be given"));
  EXPECT_THAT(message(With("1.0e12}", "1.0e12, fp5: 1}")), HasSubstr("hardware[0].flops.fp5: must be one of"));
  EXPECT_THAT(message(With("launchSeconds: 5.0e-6", "launchSeconds: 0")), HasSubstr("hardware[0].launchSeconds"));
  EXPECT_THAT(message(With("launchSeconds: estimate", "launchSeconds: ''")),
              HasSubstr("hardware[0].sources: has no source for launchSeconds"));
  EXPECT_THAT(message(With("class: GPU", "class: FPGA")), HasSubstr("hardware[0].class: must be CPU or GPU"));
  EXPECT_THAT(message(With("name: a", "name: ''")), HasSubstr("hardware[0].name"));
  EXPECT_THAT(message("hardware: []"), HasSubstr("hardware: must not be empty"));
  EXPECT_THAT(message("hardwear: []"), HasSubstr("unknown field"));
}

}  // namespace
}  // namespace medley::model
