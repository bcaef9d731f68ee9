// The fence between two coordinators, in every order of their calls to the volume: what the old one acts on is what the
// new one reads. A process that is killed at any call loses nothing.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/claim/claims.h"
#include "worker/coordinator/server/journal.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;

// Counts its calls. Before one of them another process acts, or it and all later ones fail.
class CountedFiles final : public Files {
 public:
  // Calls count from now on.
  void Before(int call, std::function<void()> act) {
    calls_ = 0;
    call_ = call;
    act_ = std::move(act);
  }
  void DieAt(int call) { dies_at_ = call; }
  bool reached() const { return calls_ > std::max(call_, dies_at_); }

  absl::StatusOr<std::vector<std::string>> List(const fs::path& folder) override {
    MEDLEY_RETURN_IF_ERROR(Count());
    return Files::List(folder);
  }
  absl::StatusOr<int> OpenToRead(const fs::path& path) override {
    MEDLEY_RETURN_IF_ERROR(Count());
    return Files::OpenToRead(path);
  }
  absl::StatusOr<size_t> Read(int fd, void* out, size_t bytes) override {
    MEDLEY_RETURN_IF_ERROR(Count());
    return Files::Read(fd, out, bytes);
  }
  absl::Status CreateFolder(const fs::path& folder) override {
    MEDLEY_RETURN_IF_ERROR(Count());
    return Files::CreateFolder(folder);
  }
  absl::StatusOr<int> CreateTemporary(std::string& pattern) override {
    MEDLEY_RETURN_IF_ERROR(Count());
    return Files::CreateTemporary(pattern);
  }
  absl::StatusOr<int> OpenToAppend(const fs::path& path) override {
    MEDLEY_RETURN_IF_ERROR(Count());
    return Files::OpenToAppend(path);
  }
  absl::Status Write(int fd, std::string_view bytes) override {
    MEDLEY_RETURN_IF_ERROR(Count());
    return Files::Write(fd, bytes);
  }
  absl::Status Sync(int fd) override {
    MEDLEY_RETURN_IF_ERROR(Count());
    return Files::Sync(fd);
  }
  absl::Status Rename(const fs::path& from, const fs::path& to) override {
    MEDLEY_RETURN_IF_ERROR(Count());
    return Files::Rename(from, to);
  }
  absl::Status Remove(const fs::path& path) override {
    MEDLEY_RETURN_IF_ERROR(Count());
    return Files::Remove(path);
  }

 private:
  absl::Status Count() {
    const int call = calls_++;
    if (dies_at_ >= 0 && call >= dies_at_) return base::Internal("killed");
    if (call == call_) act_();
    return absl::OkStatus();
  }

  int calls_ = 0;
  int call_ = -1;
  int dies_at_ = -1;
  std::function<void()> act_;
};

class FenceTest : public testing::Test {
 protected:
  // A folder in which the coordinator of term 1 leads and has written generation 1.
  void Begin(Files& old_files = SystemFiles()) {
    End();
    root_ = *base::MakeTempDir("medley-fence");
    claim_ = *Claims(root_).Take(1, "10.0.0.1:7070", "old");
    EXPECT_THAT((*Journal::Open(root_, claim_))->Append(State(1)), IsOk());
    old_ = *Journal::Open(Volume(root_, old_files), claim_);
  }
  void TearDown() override { End(); }
  void End() {
    old_.reset();
    if (!root_.empty()) base::RemoveTempDir(root_);
  }
  static job::v1::CoordinatorState State(int64_t generation) {
    job::v1::CoordinatorState state;
    state.set_last_generation(generation);
    return state;
  }
  // Whether the old coordinator may act on its record of generation 2.
  bool OldActs(Files& files = SystemFiles()) {
    return old_->Append(State(2)).ok() && Claims(Volume(root_, files)).Check(claim_).ok();
  }
  // The generation that the coordinator of this term reads; -1: it was killed before.
  int64_t Start(int64_t term, Files& files = SystemFiles()) {
    const Volume volume(root_, files);
    const absl::StatusOr<Claim> claim = Claims(volume).Take(term, "10.0.0.2:7070", "new");
    if (!claim.ok()) return -1;
    const auto journal = Journal::Open(volume, *claim);
    return journal.ok() && (*journal)->restored() ? (*journal)->restored()->last_generation() : -1;
  }

  fs::path root_;
  Claim claim_;  // of the old coordinator
  std::unique_ptr<Journal> old_;
};

// The new one has the next term; or the same one, as a pod that was created twice.
class FenceOfTermTest : public FenceTest, public testing::WithParamInterface<int64_t> {};

TEST_P(FenceOfTermTest, TheNewOneReadsWhatTheOldOneActsOn) {
  for (int call = 0;; ++call) {
    SCOPED_TRACE(testing::Message() << "the new one before call " << call << " of the old one");
    CountedFiles files;
    Begin(files);
    int64_t read = 0;
    files.Before(call, [&] { read = Start(GetParam()); });
    const bool acts = OldActs(files);
    if (!files.reached()) {
      EXPECT_TRUE(acts) << "nobody else came";
      EXPECT_GT(call, 3);
      break;
    }
    EXPECT_TRUE(!acts || read == 2) << "it reads generation " << read;
  }
  for (int call = 0;; ++call) {
    SCOPED_TRACE(testing::Message() << "the old one before call " << call << " of the new one");
    CountedFiles files;
    Begin();
    bool acts = false;
    files.Before(call, [&] { acts = OldActs(); });
    const int64_t read = Start(GetParam(), files);
    if (!files.reached()) {
      EXPECT_GT(call, 10);
      break;
    }
    EXPECT_TRUE(!acts || read == 2) << "it reads generation " << read;
  }
}

INSTANTIATE_TEST_SUITE_P(Terms, FenceOfTermTest, testing::Values(1, 2));

// It is stopped between its look at the claims and its write, and wakes when another process leads in its term.
TEST_F(FenceTest, WhatAFormerProcessOfTheTermWritesLateIsNotRead) {
  Begin();
  const Claim later = *Claims(root_).Take(1, "10.0.0.2:7070", "later");
  auto journal = *Journal::Open(root_, later);
  ASSERT_THAT(journal->Append(State(2)), IsOk());
  job::v1::CoordinatorState large = State(9);  // enough to be compacted, which writes the file anew
  large.set_message(std::string(3 << 20, 'x'));
  for (int i = 0; i < 3; ++i) ASSERT_THAT(old_->Append(large), IsOk());
  EXPECT_EQ((*Journal::Open(root_, *Claims(root_).Take(1, "10.0.0.3:7070", "last")))->restored()->last_generation(), 2);
}

TEST_F(FenceTest, ANewOneThatIsKilledAtAnyCallLosesNothing) {
  for (const int64_t next : {2, 3}) {  // it is started again, or another one is
    for (int call = 0;; ++call) {
      SCOPED_TRACE(testing::Message() << "killed at call " << call << ", then term " << next);
      Begin();
      CountedFiles files;
      files.DieAt(call);
      const int64_t read = Start(2, files);
      if (!files.reached()) {
        EXPECT_EQ(read, 1);
        EXPECT_GT(call, 10);
        break;
      }
      const bool acts = OldActs();  // it leads on unless the claim was written
      EXPECT_EQ(acts, Claims(root_).Newest()->term == 1);
      const int64_t found = Start(next);
      EXPECT_TRUE(found == 2 || (found == 1 && !acts)) << "it reads generation " << found;
    }
  }
}

}  // namespace
}  // namespace medley::worker
