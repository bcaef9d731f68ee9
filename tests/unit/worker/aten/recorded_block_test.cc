// Blocks whose passes the test device records: the bits of those that are computed kernel by kernel, and what happens
// when their memory is freed, when an allocation fails, or when a step ends early. Not for the build with CUDA.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/aten/exported_sample.h"
#include "worker/aten/aten_block.h"
#include "worker/aten/recorder.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/guarded_device.h"
#include "worker/device/unrecorded_device.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using base::StatusIs;
using device::GuardedMemory;
using ::testing::HasSubstr;
using Bits = std::vector<float>;  // compared with ==, so they must be numbers

GuardedMemory& RecordedMemoryOfTest() { return GuardedMemory::OfProcess(); }

struct Setting {
  std::string model;
  bool halves = false;  // two blocks
  int kept = 1;
  int micros = 1;
  bool may_record = true;
};

// A model in blocks on the test device, and its steps.
class Recorded {
 public:
  explicit Recorded(const Setting& setting)
      : setting_(setting),
        sample_(SampleOf(setting.model, Expected(setting.model == "dropout" ? "conv" : setting.model))),
        graph_(GraphOf(setting.model, sample_, {.depth = 1, .finest = true})),
        optimizer_(*MakeOptimizer("adam", 0.01)) {
    std::shared_ptr<device::Device> device = *OpenTestedDevice();
    if (!setting.may_record) device = std::make_shared<device::UnrecordedDevice>(device);
    const int all = static_cast<int>(graph_.operations.size());
    std::vector<int> ends = {all};
    if (setting.halves) ends.insert(ends.begin(), all / 2);
    for (int first = 0; const int end : ends) {
      auto block = AtenBlock::Create(
          graph_, {first, end}, {.optimizer = optimizer_, .seed = 11, .kept_updates = setting.kept, .device = device});
      EXPECT_THAT(block, IsOk());
      blocks_.push_back(*std::move(block));
      first = end;
    }
  }

  // `samples`: of the batch; 0: all. `rate`: times the learning rate.
  absl::Status Step(int64_t step, int samples = 0, float rate = 1, bool ends = true) {
    if (samples == 0) samples = sample_.batch.samples;
    for (const auto& block : blocks_) {
      block->BeginStep(
          {.step = step, .version = step - 1, .micro_batches = setting_.micros, .global_samples = samples});
    }
    const int each = samples / setting_.micros;
    for (int m = 0; m < setting_.micros; ++m) {
      MEDLEY_RETURN_IF_ERROR(Passes({.micro = m, .first_sample = m * each}, sample_.batch.View(m * each, each), ends));
    }
    if (!ends) return absl::OkStatus();
    Optimizer scheduled = optimizer_.AtStep(step);
    scheduled.learning_rate *= rate;
    for (const auto& block : blocks_) MEDLEY_RETURN_IF_ERROR(block->ApplyUpdate(scheduled));
    return absl::OkStatus();
  }

  // The loss of the last step, and all weights and their state.
  Bits All() {
    Bits all = {static_cast<float>(blocks_.back()->LossSum(0))};
    for (const auto& block : blocks_) {
      const std::vector<DenseParameter> parameters = block->Parameters();
      for (size_t p = 0; p < parameters.size(); ++p) {
        for (const DensePart part : {DensePart::kWeights, DensePart::kState}) {
          Bits values(static_cast<size_t>(parameters[p].spec.Size()) * (part == DensePart::kState ? 2 : 1));
          EXPECT_THAT(block->ReadValues(p, part, 0, values), IsOk());
          all.insert(all.end(), values.begin(), values.end());
        }
      }
    }
    return all;
  }

  RecordingCounts Counts() const {
    RecordingCounts counts;
    for (const auto& block : blocks_) counts += block->Recordings();
    return counts;
  }
  std::vector<std::unique_ptr<AtenBlock>>& blocks() { return blocks_; }
  const Sample& sample() const { return sample_; }

 private:
  absl::Status Passes(Pass pass, const BatchView& batch, bool ends) {
    std::map<int, Bits> values, gradients;
    std::vector<std::span<const float>> passed;
    for (const auto& block : blocks_) {
      passed.clear();
      for (const BlockValue& input : block->Inputs()) passed.emplace_back(values.at(input.operation));
      MEDLEY_ASSIGN_OR_RETURN(const Values given, block->Forward(pass, batch, passed));
      for (size_t k = 0; k < given.size(); ++k) {
        values[block->Outputs()[k].operation] = Bits(given[k].begin(), given[k].end());
      }
    }
    for (size_t b = blocks_.size(); ends && b-- > 0;) {
      passed.clear();
      for (const BlockValue& output : blocks_[b]->Outputs()) passed.emplace_back(gradients.at(output.operation));
      MEDLEY_ASSIGN_OR_RETURN(const Values given, blocks_[b]->Backward(pass, passed));
      for (size_t k = 0; k < given.size(); ++k) {
        Bits& sum = gradients[blocks_[b]->Inputs()[k].operation];
        sum.resize(given[k].size());
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += given[k][i];
      }
    }
    return absl::OkStatus();
  }

  const Setting setting_;
  const Sample sample_;
  const Graph graph_;
  const Optimizer optimizer_;
  std::vector<std::unique_ptr<AtenBlock>> blocks_;
};

class RecordedBlockTest : public ::testing::TestWithParam<Setting> {};

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (const char* model : {"mlp", "conv", "dropout", "tied", "transformer", "two-inputs", "numbers"}) {
    settings.push_back({.model = model});
    settings.push_back({.model = model, .halves = true, .micros = 2});
  }
  for (const int kept : {0, 3}) settings.push_back({.model = "dropout", .kept = kept});
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Models, RecordedBlockTest, ::testing::ValuesIn(Settings()), [](const auto& tested) {
  std::string name =
      tested.param.model + (tested.param.halves ? "InHalves" : "") + "Keeps" + std::to_string(tested.param.kept);
  std::erase(name, '-');
  return name;
});

// Masks of dropout, Adam's corrections and the learning rate differ from step to step.
TEST_P(RecordedBlockTest, HaveTheBitsOfBlocksWithoutRecordings) {
  Setting plain = GetParam();
  plain.may_record = false;
  Recorded recorded(GetParam()), unrecorded(plain);
  const int64_t steps = 6 * (GetParam().kept + 1);
  for (int64_t step = 1; step <= steps; ++step) {
    const float rate = step < steps / 2 ? 1 / static_cast<float>(step) : 0.7F;
    ASSERT_THAT(recorded.Step(step, 0, rate), IsOk()) << step;
    ASSERT_THAT(unrecorded.Step(step, 0, rate), IsOk()) << step;
    ASSERT_EQ(recorded.All(), unrecorded.All()) << step;
  }
  const RecordingCounts counts = recorded.Counts();
  EXPECT_EQ(counts.reason, "");
  // A forward and a backward pass of each micro-batch and an update, of each block and version.
  int64_t recordings = 0, done = 0;
  for (const auto& block : recorded.blocks()) {
    const bool has_parameters = !block->Parameters().empty();
    const int64_t versions = has_parameters ? GetParam().kept + 1 : 1;
    const int64_t some = (2 * GetParam().micros + (has_parameters ? 1 : 0)) * versions;
    recordings += some;
    done += some * (steps / versions - Recorder::kWarmUp);
  }
  EXPECT_EQ(counts.recorded, recordings);
  EXPECT_EQ(counts.replayed, done);
  EXPECT_EQ(unrecorded.Counts().replayed, 0);
}

TEST(RecordedBlocksTest, AStepOfRecordingsIsGivenInFewCalls) {
  Recorded recorded({.model = "conv"});
  std::vector<int64_t> launches;
  for (int64_t step = 1; step <= 10; ++step) {
    const int64_t before = RecordedMemoryOfTest().launches();
    const device::CopyCounts copied = RecordedMemoryOfTest().counts();
    ASSERT_THAT(recorded.Step(step), IsOk());
    recorded.blocks().front()->LossSum(0);
    launches.push_back(RecordedMemoryOfTest().launches() - before);
    const device::CopyCounts step_copied = RecordedMemoryOfTest().counts() - copied;
    const auto& batch = recorded.sample().batch;
    EXPECT_EQ(step_copied.bytes_in, static_cast<int64_t>(4 * (batch.numerics.size() + batch.labels.size())));
    EXPECT_EQ(step_copied.bytes_out, static_cast<int64_t>(sizeof(double)));
  }
  std::printf("kernels and recordings of a step: %ld, then %ld\n", static_cast<long>(launches.front()),
              static_cast<long>(launches.back()));
  // Both passes and the update; zeros for the gradients, a copy of the loss, two factors of Adam.
  EXPECT_LE(launches.back(), 7);
  EXPECT_GE(launches.front(), 5 * launches.back());
}

TEST(RecordedBlocksTest, ABatchOfAnotherSizeIsComputedKernelByKernelBetweenRecordings) {
  Recorded recorded({.model = "dropout"}), unrecorded({.model = "dropout", .may_record = false});
  const int all = recorded.sample().batch.samples;
  for (int64_t step = 1; step <= 14; ++step) {
    const int samples = step % 7 == 0 ? all - 1 : all;
    ASSERT_THAT(recorded.Step(step, samples), IsOk());
    ASSERT_THAT(unrecorded.Step(step, samples), IsOk());
    ASSERT_EQ(recorded.All(), unrecorded.All()) << step;
  }
  EXPECT_GT(recorded.Counts().replayed, 0);
}

// Undone steps, parameters that replicas agreed on, and parameters that come from elsewhere.
TEST(RecordedBlocksTest, HaveTheBitsOfOthersAfterRollbacksAndTransfers) {
  Recorded recorded({.model = "dropout"}), unrecorded({.model = "dropout", .may_record = false});
  const auto both = [&](const auto& act) {
    for (Recorded* each : {&recorded, &unrecorded}) ASSERT_THAT(act(*each), IsOk());
    ASSERT_EQ(recorded.All(), unrecorded.All());
  };
  const auto steps = [&](int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) both([&](Recorded& each) { return each.Step(step); });
  };
  steps(1, 8);
  both([](Recorded& each) { return each.blocks().front()->UndoTo(7); });
  both([](Recorded& each) { return each.Step(8, 0, 1, /*ends=*/false); });  // a step that is given up
  steps(8, 9);
  both([](Recorded& each) { return each.blocks().front()->KeepAgreed(); });
  steps(10, 13);
  both([](Recorded& each) { return each.blocks().front()->UndoTo(9); });
  steps(10, 11);
  both([](Recorded& each) -> absl::Status {
    AtenBlock& block = *each.blocks().front();
    block.ForgetAgreed();
    Bits values(static_cast<size_t>(block.Parameters().front().spec.Size()), 0.125F);
    MEDLEY_RETURN_IF_ERROR(block.WriteValues(0, DensePart::kWeights, 0, values));
    block.SetAppliedStep(20);
    return absl::OkStatus();
  });
  steps(21, 28);
  EXPECT_GT(recorded.Counts().replayed, 15);
}

// A forward pass is recorded, and the step ends before its backward pass.
TEST(RecordedBlocksTest, AStepThatEndsBetweenItsPassesLeavesNoHalfRecording) {
  Recorded recorded({.model = "mlp", .kept = 0}), unrecorded({.model = "mlp", .kept = 0, .may_record = false});
  for (int64_t step = 1; step <= 8; ++step) {
    if (step == 3) {
      ASSERT_THAT(recorded.Step(step, 0, 1, /*ends=*/false), IsOk());
    }
    ASSERT_THAT(recorded.Step(step), IsOk());
    ASSERT_THAT(unrecorded.Step(step), IsOk());
    ASSERT_EQ(recorded.All(), unrecorded.All()) << step;
  }
  EXPECT_EQ(recorded.Counts().reason, "");
}

TEST(RecordedBlocksTest, MemoryOfRecordingsIsCountedDoesNotGrowAndIsGivenBack) {
  const size_t before = RecordedMemoryOfTest().used();
  {
    Recorded recorded({.model = "transformer"});
    size_t used = 0;
    for (int64_t step = 1; step <= 30; ++step) {
      ASSERT_THAT(recorded.Step(step), IsOk());
      recorded.blocks().front()->LossSum(0);
      if (step == 10) used = RecordedMemoryOfTest().used();
    }
    EXPECT_GT(recorded.Counts().bytes, 0);
    EXPECT_LE(RecordedMemoryOfTest().used(), used);
    EXPECT_GE(static_cast<int64_t>(RecordedMemoryOfTest().used() - before), recorded.Counts().bytes);
  }
  EXPECT_EQ(RecordedMemoryOfTest().used(), before);
}

// Each allocation of the step that records fails once: it is computed all the same, or is an error of one sentence.
TEST(RecordedBlocksTest, AnAllocationThatFailsWhileItIsRecordedCostsTheRecording) {
  Recorded unrecorded({.model = "mlp", .kept = 0, .may_record = false});
  for (int64_t step = 1; step <= 5; ++step) ASSERT_THAT(unrecorded.Step(step), IsOk());
  const Bits expected = unrecorded.All();
  int without = 0;
  for (int64_t number = 1;; ++number) {
    ASSERT_LT(number, 1000);
    Recorded recorded({.model = "mlp", .kept = 0});
    for (int64_t step = 1; step <= 2; ++step) ASSERT_THAT(recorded.Step(step), IsOk());
    const int64_t before = RecordedMemoryOfTest().allocations();
    RecordedMemoryOfTest().FailAllocation(number);
    const absl::Status status = recorded.Step(3);
    RecordedMemoryOfTest().FailAllocation(0);
    if (!status.ok()) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("training.batchSize")));
      continue;
    }
    for (int64_t step = 4; step <= 5; ++step) ASSERT_THAT(recorded.Step(step), IsOk());
    EXPECT_EQ(recorded.All(), expected) << number;
    if (RecordedMemoryOfTest().allocations() - before < number) break;
    without += recorded.Counts().reason.empty() ? 0 : 1;
  }
  EXPECT_GT(without, 10) << "steps that were computed kernel by kernel for want of memory";
}

TEST(RecordedBlocksTest, WithoutMemoryForMoreAllOtherPassesAreComputedKernelByKernel) {
  Recorded recorded({.model = "mlp"});
  const int64_t total = RecordedMemoryOfTest().total();
  for (int64_t step = 1; step <= 5; ++step) ASSERT_THAT(recorded.Step(step), IsOk());  // the first version is recorded
  RecordedMemoryOfTest().SetTotal(static_cast<int64_t>(RecordedMemoryOfTest().used()) + 64);
  for (int64_t step = 6; step <= 9; ++step) ASSERT_THAT(recorded.Step(step), IsOk());
  RecordedMemoryOfTest().SetTotal(total);
  EXPECT_THAT(recorded.Counts().reason, HasSubstr("would take more than a quarter"));
}

// What a GPU would not notice: the test device does.
TEST(RecordedBlocksTest, AReplayAfterItsMemoryWasFreedOrMovedIsAnError) {
  const Place place(*OpenTestedDevice());
  Recorder recorder(place, "work");
  const auto memory = recorder.NewMemory();
  at::Tensor from = at::ones({8}, place.Floats()), to = at::zeros({8}, place.Floats());
  const auto recording = recorder.Record({1}, *memory, [&] {
    to.add_(from.mul(2));
    return absl::OkStatus();
  });
  ASSERT_THAT(recording, IsOk());
  ASSERT_THAT(recorder.Replay(**recording), IsOk());
  from = from.clone();  // it moves
  EXPECT_THAT(
      recorder.Replay(**recording),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("uses a block of 32 bytes of the device that was freed")));
}

// Each of the addresses that a key must have: without it the device finds the freed block.
TEST(RecordedBlocksTest, WorkThatIsKnownByLessThanItsAddressesIsAnError) {
  const Place place(*OpenTestedDevice());
  Recorder recorder(place, "work");
  absl::Status status;
  for (int step = 0; step < 4; ++step) {
    at::Tensor moved = at::ones({4}, place.Floats());
    status.Update(recorder.Do({1}, [&] {
      moved.add_(1);
      return absl::OkStatus();
    }));
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("was freed since it was made")));
}

}  // namespace
}  // namespace medley::worker::aten
