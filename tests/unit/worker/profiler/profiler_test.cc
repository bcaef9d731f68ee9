#include "worker/profiler/profiler.h"
#include "common/model/model.h"
#include "common/model/profile.h"
#include "common/model/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/convert.h"
#include "medley/profile/v1/profile.pb.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"
#include "worker/profiler/allreduce_table.h"

namespace medley::worker {
namespace {

using ::testing::HasSubstr;

model::JobSpec Adult() {
  model::JobSpec job = testing::AdultJob();
  job.model.hidden = {64, 32};
  job.data.test.reset();
  job.training.batch_size = 256;
  return job;
}

// A probe with predictable costs: 1 GB/s, and one microsecond per row.
class FixedProbe : public CommunicationProbe {
 public:
  absl::StatusOr<Traffic> Allreduce(int64_t bytes, int) override {
    return Traffic{static_cast<double>(bytes) * 1e-9, processor_share * static_cast<double>(bytes) * 1e-9};
  }
  absl::StatusOr<double> AllreduceSeconds(int64_t bytes, int, model::AllreduceAlgorithm) override {
    return 1e-9 * static_cast<double>(bytes);
  }
  absl::StatusOr<Traffic> Exchange(int64_t bytes) override { return Traffic{2e-9 * static_cast<double>(bytes), 0}; }
  absl::StatusOr<double> ExchangeAmidComputation(int64_t bytes, int64_t computed_bytes) override {
    return (computed_bytes > 0 ? 1e-5 : 3e-6) + 1e-9 * static_cast<double>(bytes);
  }
  absl::StatusOr<ServerCost> PullPushCost(int64_t rows, int) override {
    return ServerCost{{static_cast<double>(rows) * 1e-6, 0}, static_cast<double>(rows) * 5e-7};
  }
  double processor_share = 0;  // of an allreduce
};

TEST(ProfilerTest, PrintsOneLineThatReadsBack) {
  base::SystemClock clock;
  std::ostringstream output;
  FixedProbe probe;
  const ProfilerOptions options{.job = Adult(),
                                .profile_id = "0123456789abcdef",
                                .resource_type = "cpu-spot",
                                .budget_seconds = 0.5,
                                .clock = &clock,
                                .output = &output,
                                .probe = &probe};
  ASSERT_EQ(base::ToString(RunProfiler(options)), "OK");
  const std::string text = output.str();
  ASSERT_TRUE(text.starts_with("MEDLEY-PROFILE {"));
  EXPECT_EQ(text.find('\n'), text.size() - 1);

  profile::v1::Profile proto;
  ASSERT_EQ(base::ToString(model::ParseText(text.substr(15), proto)), "OK");
  const absl::StatusOr<model::Profile> profile = model::FromProto(proto);
  ASSERT_TRUE(profile.ok()) << base::ToString(profile.status());
  EXPECT_EQ(profile->samples_per_epoch, 32561);
  EXPECT_EQ(profile->profile_batch_size, 256);
  EXPECT_EQ(profile->id, "0123456789abcdef");
  ASSERT_EQ(profile->model.layers.size(), 5U);
  ASSERT_EQ(profile->links.size(), 1U);
  EXPECT_NEAR(profile->links[0].processor_seconds_per_byte, 0.5e-9, 1e-15) << "amid computation, each way half";
  EXPECT_NEAR(profile->links[0].processor_seconds_per_message * profile->micro_batches, 5.5e-6, 0.1e-6);
  EXPECT_NEAR(profile->links[0].processor_seconds_per_message_in_a_row * profile->micro_batches, 2e-6, 0.1e-6);
  double parameters = 0;
  for (const model::Layer& layer : profile->model.layers) parameters += layer.sparse ? 0 : layer.weight_bytes;
  EXPECT_EQ(profile->links[0].computed_bytes_per_message, parameters)
      << "in a stage with half of them and their gradients";
  for (const model::Layer& layer : profile->model.layers) {
    ASSERT_EQ(layer.profiles.size(), 1U);
    EXPECT_EQ(layer.profiles[0].resource_type, "cpu-spot");
    EXPECT_GT(layer.profiles[0].compute_seconds, 0) << layer.name;
    EXPECT_GE(layer.profiles[0].compute_parallel, 0);
    EXPECT_LE(layer.profiles[0].compute_parallel, 1);
  }
  const model::LayerProfile& embedding = profile->model.layers[0].profiles[0];
  EXPECT_GT(embedding.server_seconds, 0);
  EXPECT_NEAR(embedding.sync_seconds, 2 * embedding.server_seconds, 1e-12);
  EXPECT_NEAR(embedding.transfer_seconds, 2e-9 * 256 * 4 * (14 * 16 + 6), 1e-12);
  EXPECT_GT(embedding.comm_parallel, 0.2);
  const model::LayerProfile& dense = profile->model.layers[1].profiles[0];
  EXPECT_EQ(dense.server_seconds, 0);
  EXPECT_NEAR(dense.sync_seconds, 4e-9 * (230 * 64 + 64), 1e-12);
  // The units do not divide y but divide x, so beta is x's part.
  EXPECT_NEAR(dense.comm_parallel, dense.transfer_seconds / (dense.transfer_seconds + dense.sync_seconds), 1e-9);
  EXPECT_EQ(profile->model.layers[4].profiles[0].transfer_seconds, 0);
  EXPECT_EQ(profile->allreduces.size(), 2U * 7 * 4);  // 2 and 4 replicas, 4 KiB to 16 MiB, every algorithm
  EXPECT_THAT(profile->allreduces,
              ::testing::Contains(model::AllreduceMeasurement{"cpu-spot", 4, 16 << 20,
                                                              model::AllreduceAlgorithm::kLinear, 1e-9 * (16 << 20)}));
}

// A slow machine measures fewer sizes, but every algorithm of each.
TEST(AllreduceTableTest, EndsWithItsBudget) {
  class SlowProbe final : public FixedProbe {
   public:
    explicit SlowProbe(base::FakeClock& clock) : clock_(clock) {}
    absl::StatusOr<double> AllreduceSeconds(int64_t bytes, int replicas, model::AllreduceAlgorithm algorithm) override {
      clock_.Advance(base::milliseconds(replicas * 100));
      // One round is disturbed.
      return (calls_++ % 12 < 4 ? 9 : 1) * FixedProbe::AllreduceSeconds(bytes, replicas, algorithm).value();
    }

   private:
    base::FakeClock& clock_;
    int calls_ = 0;
  };
  base::FakeClock clock;
  SlowProbe probe(clock);
  const auto measured = MeasureAllreduces(probe, clock, "cpu", 12, {});
  ASSERT_EQ(base::ToString(measured.status()), "OK");
  std::map<std::pair<int, int64_t>, int> counts;
  for (const model::AllreduceMeasurement& one : *measured) {
    ++counts[{one.ranks, one.bytes}];
    EXPECT_DOUBLE_EQ(one.seconds, 1e-9 * static_cast<double>(one.bytes));
  }
  const std::map<std::pair<int, int64_t>, int> expected = {
      {{2, 4 << 10}, 4}, {{2, 16 << 10}, 4}, {{2, 64 << 10}, 4}, {{4, 4 << 10}, 4}, {{4, 16 << 10}, 4}};
  EXPECT_EQ(counts, expected);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(MeasureAllreduces(probe, clock, "cpu", 4, stop.get_token()).status().code(), absl::StatusCode::kCancelled);
}

// Every layer is measured once, even on a machine so slow that the first run exceeds the budget.
TEST(ProfilerTest, MeasuresEveryLayerHoweverShortTheBudget) {
  base::SystemClock clock;
  std::ostringstream output;
  FixedProbe probe;
  const ProfilerOptions options{.job = Adult(),
                                .resource_type = "slow",
                                .budget_seconds = 1e-9,
                                .clock = &clock,
                                .output = &output,
                                .probe = &probe};
  ASSERT_EQ(base::ToString(RunProfiler(options)), "OK");
  profile::v1::Profile proto;
  ASSERT_EQ(base::ToString(model::ParseText(output.str().substr(15), proto)), "OK");
  for (const auto& layer : proto.model().layers()) {
    ASSERT_EQ(layer.profiles_size(), 1) << layer.name();
    EXPECT_GT(layer.profiles(0).compute_seconds(), 0) << layer.name();
  }
}

// What an allreduce takes of the processor is not there for computing, whatever the number of units.
TEST(ProfilerTest, SynchronisationTakesProcessorTime) {
  base::SystemClock clock;
  std::ostringstream output;
  FixedProbe probe;
  probe.processor_share = 1e6;  // 1 ms a byte: far more than computing takes
  const ProfilerOptions options{.job = Adult(),
                                .resource_type = "cpu",
                                .budget_seconds = 0.1,
                                .clock = &clock,
                                .output = &output,
                                .probe = &probe};
  ASSERT_EQ(base::ToString(RunProfiler(options)), "OK");
  profile::v1::Profile proto;
  ASSERT_EQ(base::ToString(model::ParseText(output.str().substr(15), proto)), "OK");
  const auto& embedding = proto.model().layers(0).profiles(0);
  EXPECT_LT(embedding.compute_seconds(), 30);  // it has no allreduce
  const auto& dense = proto.model().layers(1).profiles(0);
  EXPECT_GE(dense.compute_seconds(), 4e-3 * (230 * 64 + 64));
  EXPECT_LT(dense.compute_parallel(), 0.5);
  EXPECT_NEAR(dense.sync_seconds(), 4e-9 * (230 * 64 + 64), 1e-12);
}

// The rest is in proportion.
// Whatever else this machine does: a quarter of a core grants a second of processor time in four.
TEST(ProfilerTest, ALimitBelowACoreSaysWhatIsGranted) {
  base::SystemClock clock;
  std::ostringstream output;
  FixedProbe probe;
  const ProfilerOptions options{.job = Adult(),
                                .resource_type = "quarter",
                                .budget_seconds = 0.2,
                                .clock = &clock,
                                .output = &output,
                                .probe = &probe,
                                .cores = 0.25,
                                .cpu_period_seconds = 0.1};
  ASSERT_THAT(RunProfiler(options), base::IsOk());
  profile::v1::Profile proto;
  ASSERT_THAT(model::ParseText(output.str().substr(15), proto), base::IsOk());
  const auto profile = model::FromProto(proto);
  ASSERT_THAT(profile, base::IsOk());
  EXPECT_EQ(profile->units, (std::vector<model::UnitCpus>{{"quarter", 0.25, 0.1}}));
  for (const model::Layer& layer : profile->model.layers) {
    EXPECT_NEAR(layer.profiles[0].burst_seconds / layer.profiles[0].compute_seconds, 0.25, 1e-9) << layer.name;
  }
}

TEST(ProfilerTest, MovesAtMost16MiBAtATime) {
  class Watched final : public FixedProbe {
   public:
    absl::StatusOr<Traffic> Allreduce(int64_t bytes, int replicas) override {
      most = std::max(most, bytes);
      return FixedProbe::Allreduce(bytes, replicas);
    }
    absl::StatusOr<Traffic> Exchange(int64_t bytes) override {
      most = std::max(most, bytes);
      return FixedProbe::Exchange(bytes);
    }
    int64_t most = 0;
  };
  base::SystemClock clock;
  std::ostringstream output;
  Watched probe;
  ProfilerOptions options{.job = Adult(), .resource_type = "cpu", .clock = &clock, .output = &output, .probe = &probe};
  options.budget_seconds = 0.01;
  options.job.model.hidden = {64, 100'000};  // 26 MB of parameters, 102 MB of outputs
  ASSERT_EQ(base::ToString(RunProfiler(options)), "OK");
  profile::v1::Profile proto;
  ASSERT_EQ(base::ToString(model::ParseText(output.str().substr(15), proto)), "OK");
  const auto& wide = proto.model().layers(2).profiles(0);
  EXPECT_NEAR(wide.sync_seconds(), 4e-9 * (64 * 100'000 + 100'000), 1e-9);
  EXPECT_NEAR(wide.transfer_seconds(), 2 * 4e-9 * 256 * 100'000, 1e-9);
  EXPECT_EQ(probe.most, 16 << 20);
}

TEST(ProfilerTest, AUnitMayHaveFewerSamplesThanMicroBatches) {
  base::SystemClock clock;
  std::ostringstream output;
  FixedProbe probe;
  ProfilerOptions options{.job = Adult(), .resource_type = "cpu", .clock = &clock, .output = &output, .probe = &probe};
  options.budget_seconds = 0.01;
  options.job.training.batch_size = 4;  // one sample with four units
  options.job.training.micro_batches = 4;
  EXPECT_EQ(base::ToString(RunProfiler(options)), "OK");
}

TEST(ProfilerTest, MissingDataIsNotFound) {
  base::SystemClock clock;
  std::ostringstream output;
  FixedProbe probe;
  ProfilerOptions options{.job = Adult(), .resource_type = "cpu", .clock = &clock, .output = &output, .probe = &probe};
  options.job.data.train.uri = "file:///no/such/file.csv";
  EXPECT_EQ(RunProfiler(options).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(output.str(), "");
}

// The profiler is the first reader of a new job's data, so it also looks at those that are read at the end.
TEST(ProfilerTest, RefusesDataOfOneClass) {
  base::SystemClock clock;
  std::ostringstream output;
  FixedProbe probe;
  ProfilerOptions options{
      .job = Adult(), .resource_type = "cpu-spot", .clock = &clock, .output = &output, .probe = &probe};
  const auto folder = base::MakeTempDir("profiler");
  ASSERT_EQ(base::ToString(folder.status()), "OK");
  const std::string test = *folder / "test.csv";
  std::ofstream(test) << "39,a,1,a,1,a,a,a,a,a,1,1,1,a,<=50K\n";
  options.job.data.test = {"file://" + test, "csv"};
  EXPECT_THAT(base::ToString(RunProfiler(options)), HasSubstr(test + ": the label in column 14 is never \">50K\""));
  options.job.data.test.reset();
  options.job.data.schema.label_positive = ">50k";
  EXPECT_THAT(base::ToString(RunProfiler(options)), HasSubstr("adult.train.csv: the label in column 14 is never"));
  base::RemoveTempDir(*folder);
}

}  // namespace
}  // namespace medley::worker
