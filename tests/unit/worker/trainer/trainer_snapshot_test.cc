// Tests that a trainer's checkpoint has the values of its step, although training goes on while it is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/checkpoint/writer.h"
#include "worker/trainer/trainer_state.h"

namespace medley::worker {
namespace {

using base::IsOk;

class TrainerSnapshotTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *base::MakeTempDir("medley-trainer");
    model::JobSpec spec;
    spec.model = {.name = "ctrdnn", .embedding_dim = 4, .embedding_rows = 40000, .hidden = {8}};
    spec.data.train = {"file:///train.csv", "csv"};  // not read
    spec.training = {.epochs = 1, .batch_size = 10, .micro_batches = 1, .optimizer = "adagrad", .learning_rate = 0.1};
    spec.data.schema = {.label_column = 0, .categorical = {1, 2}, .numeric = {3, 4}};
    graph_ = BuildGraph(spec).value();
    state_ = TrainerState::Create(graph_, {.range = {0, static_cast<int>(graph_.operations.size())},
                                           .local_tables = true,
                                           .optimizer = MakeOptimizer("adagrad", 0.1).value()})
                 .value();
  }
  void TearDown() override { base::RemoveTempDir(root_); }

  CheckpointFileEntry Write(const TrainerSnapshot& snapshot, int64_t generation) {
    auto writer = CheckpointWriter::Create(root_, "step-00000007-e3", DenseFileName(generation, 0)).value();
    EXPECT_THAT(snapshot.Write(*writer), IsOk());
    return writer->Finish().value();
  }
  std::string Bytes(const CheckpointFileEntry& file) {
    return base::ReadFile(root_ / "step-00000007-e3" / file.name).value();
  }
  std::vector<float> All() {
    std::vector<float> all;
    for (const int operation : state_->Holds()) {
      for (const std::span<float> values : state_->Values(operation))
        all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  std::filesystem::path root_;
  Graph graph_;
  std::shared_ptr<TrainerState> state_;
};

TEST_F(TrainerSnapshotTest, DoesNotChangeWithTheState) {
  const TrainerSnapshot snapshot = state_->Snapshot();
  const CheckpointFileEntry at_once = Write(snapshot, 1);
  const std::vector<float> before = All();
  for (const int operation : state_->Holds()) {
    for (const std::span<float> values : state_->Values(operation)) std::ranges::fill(values, 5.0f);
  }
  const CheckpointFileEntry later = Write(snapshot, 2);
  EXPECT_EQ(Bytes(at_once), Bytes(later));
  CheckpointManifest manifest;
  manifest.generation = 3;
  manifest.step = 7;
  manifest.rows = 100;
  manifest.batch_size = 10;
  manifest.folder = "step-00000007-e3";
  manifest.files = {later};
  ASSERT_THAT(state_->Load(root_, manifest), IsOk());
  EXPECT_EQ(All(), before);
  EXPECT_EQ(state_->samples(), 70);
}

}  // namespace
}  // namespace medley::worker
