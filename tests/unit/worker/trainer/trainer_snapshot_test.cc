// Tests that a trainer's checkpoint has the values of its step, although training goes on while it is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/job_spec.h"
#include "worker/checkpoint/writer.h"
#include "worker/trainer/trainer_state.h"

namespace medley::worker {
namespace {

using base::IsOk;

class TrainerSnapshotTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    root_ = *base::MakeTempDir("medley-trainer");
    model::JobSpec spec;
    spec.model = {.name = "ctrdnn", .embedding_dim = 4, .embedding_rows = 40000, .hidden = {8}};
    spec.data.train = {"file:///train.csv", "csv"};  // not read
    spec.training = {.epochs = 1, .batch_size = 10, .micro_batches = 1, .optimizer = GetParam(), .learning_rate = 0.1};
    spec.data.schema = {.label_column = 0, .categorical = {1, 2}, .numeric = {3, 4}};
    graph_ = BuildGraph(spec).value();
    state_ = Create();
  }
  void TearDown() override { base::RemoveTempDir(root_); }

  std::shared_ptr<TrainerState> Create() {
    return TrainerState::Create(graph_, {.blocks = {{0, static_cast<int>(graph_.operations.size())}},
                                         .local_tables = true,
                                         .settings = {.optimizer = optimizer_}})
        .value();
  }
  // Applies a step with gradients that follow from its number.
  void Train(TrainerState& state, int64_t step) {
    state.BeginStep(step, 10);
    float value = static_cast<float>(step % 7) - 3;
    const auto next = [&value] { return value = -0.9F * value + 0.01F; };
    state.models().front()->Gradients();
    for (const DenseParameter& parameter : state.models().front()->Parameters())
      std::ranges::generate(parameter.gradient, next);
    ASSERT_THAT(state.models().front()->ApplyUpdate(optimizer_.AtStep(step)), IsOk());
    const std::vector<TableKeys> keys = {
        {graph_.Parameters(true).at(0).operation, 4, {5, static_cast<uint64_t>(step)}}};
    std::vector<float> gradient(8);
    std::ranges::generate(gradient, next);
    const std::vector<std::span<const float>> gradients = {gradient};
    ASSERT_THAT(state.tables()->Push(step, keys, gradients, 10, {}), IsOk());
  }
  CheckpointManifest Manifest(int64_t step, CheckpointFileEntry file) {
    CheckpointManifest manifest;
    manifest.generation = 3;
    manifest.step = step;
    manifest.rows = 100;
    manifest.batch_size = 10;
    manifest.folder = "step-00000007-e3";
    manifest.files = {std::move(file)};
    return manifest;
  }

  CheckpointFileEntry Write(const TrainerSnapshot& snapshot, const char* folder = "step-00000007-e3") {
    auto writer = CheckpointWriter::Create(root_, folder, {{}, 3, 7}).value();
    EXPECT_THAT(snapshot.Write(*writer), IsOk());
    return writer->Finish().value();
  }
  std::string Bytes(const char* folder, const CheckpointFileEntry& file) {
    return base::ReadFile(root_ / folder / file.name).value();
  }
  std::set<int> Held() const { return {state_->Holds().begin(), state_->Holds().end()}; }
  static std::vector<float> All(TrainerState& state) {
    std::vector<float> all;
    for (const int operation : state.Holds()) {
      for (const DenseValues& values : state.Values(operation)) {
        const std::vector<float> copy = *values.Copy();
        all.insert(all.end(), copy.begin(), copy.end());
      }
    }
    return all;
  }

  std::filesystem::path root_;
  const Optimizer optimizer_ = MakeOptimizer(GetParam(), 0.1).value();
  Graph graph_;
  std::shared_ptr<TrainerState> state_;
};

INSTANTIATE_TEST_SUITE_P(Optimizers, TrainerSnapshotTest, testing::Values("sgd", "adagrad", "adam", "ftrl"),
                         [](const auto& at) { return std::string(at.param); });

TEST_P(TrainerSnapshotTest, DoesNotChangeWithTheState) {
  float value = 0;
  for (const int operation : state_->Holds()) {  // so that no two values are equal by chance
    for (const DenseValues& values : state_->Values(operation)) {
      std::vector<float> numbers(values.size());
      std::ranges::generate(numbers, [&] { return ++value; });
      ASSERT_THAT(values.Store(0, numbers), IsOk());
    }
  }
  const TrainerSnapshot snapshot = *state_->Snapshot(Held());
  const CheckpointFileEntry at_once = Write(snapshot, "earlier");
  const std::vector<float> before = All(*state_);
  for (const int operation : state_->Holds()) {
    for (const DenseValues& values : state_->Values(operation))
      ASSERT_THAT(values.Store(0, std::vector<float>(values.size(), 5.0f)), IsOk());
  }
  const CheckpointFileEntry later = Write(snapshot);
  EXPECT_EQ(Bytes("earlier", at_once), Bytes("step-00000007-e3", later));
  ASSERT_THAT(state_->Load(root_, Manifest(7, later)), IsOk());
  EXPECT_EQ(All(*state_), before);
  EXPECT_EQ(state_->samples(), 70);
}

// Checkpoints of SGD had a state beside each row until decision 80, which nothing used. Other rows must fit exactly.
TEST_P(TrainerSnapshotTest, ARowHasTheStateOfItsOptimizerOrAnUnusedOne) {
  TrainerSnapshot snapshot = *state_->Snapshot(Held());
  snapshot.tables.clear();
  const int table = graph_.Parameters(true).at(0).operation;
  auto writer = CheckpointWriter::Create(root_, "step-00000007-e3", {{}, 3, 7}).value();
  ASSERT_THAT(snapshot.Write(*writer), IsOk());
  ASSERT_THAT(writer->AddRows(table, 8, std::vector<uint64_t>{5}, std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0}), IsOk());
  const absl::Status loaded = state_->Load(root_, Manifest(7, writer->Finish().value()));
  if (StateFloats(optimizer_.kind) == 2) {
    EXPECT_THAT(loaded, base::StatusIs(absl::StatusCode::kDataLoss));
    return;
  }
  ASSERT_THAT(loaded, IsOk());
  const auto row = state_->tables()->Weights(table).subspan(size_t{5} * 4, 4);
  EXPECT_EQ(std::vector<float>(row.begin(), row.end()), (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(TrainerSnapshotTest, ARestartFromACheckpointContinuesBitwise) {
  for (int64_t step = 1; step <= 7; ++step) Train(*state_, step);
  const CheckpointFileEntry file = Write(*state_->Snapshot(Held()));
  const auto restarted = Create();
  ASSERT_THAT(restarted->Load(root_, Manifest(7, file)), IsOk());
  for (int64_t step = 8; step <= 20; ++step) {
    Train(*state_, step);
    Train(*restarted, step);
  }
  EXPECT_EQ(All(*restarted), All(*state_));
  ASSERT_THAT(restarted->UndoTo(19), IsOk());
  EXPECT_NE(All(*restarted), All(*state_));
  Train(*restarted, 20);
  EXPECT_EQ(All(*restarted), All(*state_));
}

}  // namespace
}  // namespace medley::worker
