#include "worker/object_files/object_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/unit/worker/places/fake_store.h"
#include "worker/checkpoint/import.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/store.h"
#include "worker/checkpoint/writer.h"
#include "worker/object_files/open_volume.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using object_store::Limits;
using object_store::ObjectStore;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr char kRoot[] = "s3://bucket/jobs/one";
// One attempt: what is tested here is what is left when requests fail.
constexpr Limits kOnce{.attempts = 1, .piece = 1000};

// A process with a connection to the store. From request `dies_at` on, counted from 0, it is dead: it hears no answer.
class Process {
 public:
  explicit Process(FakeStore& store, int dies_at = -1, bool last_is_carried_out = false) {
    const auto exchange = [this, inner = store.exchange(), dies_at, last_is_carried_out](
                              const http_client::Request& request, const std::string& what,
                              const std::stop_token& stop) -> http_client::Result {
      const int number = requests_++;
      if (dies_at < 0 || number < dies_at) return inner(request, what, stop);
      if (number == dies_at && last_is_carried_out) (void)inner(request, what, stop);
      http_client::Result none;
      none.status = base::Unavailable("{}: the process is dead", what);
      return none;
    };
    object_store::Settings settings;
    settings.path_style = true;
    settings.endpoint = "https://store";
    const auto made = std::make_shared<ObjectStore>(settings, clock_, 1, kOnce, exchange);
    files_ = std::make_shared<ObjectFiles>(made, made);
  }
  Files& files() { return *files_; }
  Volume volume() { return Volume(kRoot, files_); }
  int requests() const { return requests_; }

 private:
  int requests_ = 0;
  base::SystemClock clock_;
  std::shared_ptr<ObjectFiles> files_;
};

std::string Text(size_t bytes, char first) {
  std::string text(bytes, first);
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(first + i % 7);
  return text;
}

absl::Status WriteTemporary(Files& files, const std::filesystem::path& path, const std::string& text, bool rename) {
  std::string temporary = path.string() + ".tmp.XXXXXX";
  MEDLEY_ASSIGN_OR_RETURN(const int fd, files.CreateTemporary(temporary));
  for (size_t at = 0; at < text.size(); at += 300) {
    MEDLEY_RETURN_IF_ERROR(files.Write(fd, std::string_view(text).substr(at, 300)));
  }
  MEDLEY_RETURN_IF_ERROR(files.Sync(fd));
  if (rename) MEDLEY_RETURN_IF_ERROR(files.Rename(temporary, path));
  files.Close(fd);
  return absl::OkStatus();
}

class ObjectFilesTest : public testing::Test {
 protected:
  FakeStore store_;
  Process process_{store_};
  Files& files_ = process_.files();
  const std::filesystem::path root_{kRoot};
};

TEST_F(ObjectFilesTest, AFileIsReadAsItWasWritten) {
  const std::string text = Text(300'000, 'a');
  ASSERT_THAT(WriteTemporary(files_, root_ / "step/data", text, true), IsOk());
  EXPECT_EQ(*files_.ReadWhole(root_ / "step/data", 1'000'000), text);
  EXPECT_THAT(files_.ReadWhole(root_ / "step/data", 1000), StatusIs(absl::StatusCode::kResourceExhausted));
  const int fd = *files_.OpenToRead(root_ / "step/data");
  EXPECT_EQ(*files_.Length(fd), 300'000);
  std::string piece(100, ' ');
  EXPECT_EQ(*files_.Read(fd, piece.data(), 100), 100U);
  ASSERT_THAT(files_.Skip(fd, 250'000), IsOk());
  EXPECT_EQ(*files_.Read(fd, piece.data(), 100), 100U);
  EXPECT_EQ(piece, text.substr(250'100, 100));
  ASSERT_THAT(files_.Skip(fd, 100'000), IsOk());
  EXPECT_EQ(*files_.Read(fd, piece.data(), 100), 0U) << "after the end";
  files_.Close(fd);
  EXPECT_EQ(files_.Stat(root_ / "step/data")->bytes, 300'000);
  EXPECT_THAT(files_.Stat(root_ / "step"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(*files_.List(root_), ElementsAre("step"));
  EXPECT_THAT(files_.List(root_ / "other"), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(files_.CreateFolder(root_ / "other"), IsOk());
  EXPECT_THAT(*files_.List(root_ / "other"), IsEmpty());
}

TEST_F(ObjectFilesTest, AnObjectThatChangesWhileItIsReadIsAnError) {
  ASSERT_THAT(WriteTemporary(files_, root_ / "data", Text(3000, 'a'), true), IsOk());
  const int fd = *files_.OpenToRead(root_ / "data");
  std::string piece(1000, ' ');
  ASSERT_THAT(files_.Read(fd, piece.data(), 1000).status(), IsOk());
  ASSERT_THAT(WriteTemporary(files_, root_ / "data", Text(3000, 'b'), true), IsOk());
  EXPECT_THAT(files_.Read(fd, piece.data(), 1000), StatusIs(absl::StatusCode::kFailedPrecondition));
  files_.Close(fd);
}

TEST_F(ObjectFilesTest, NothingExistsBeforeItIsRenamed) {
  ASSERT_THAT(WriteTemporary(files_, root_ / "step/data", Text(5000, 'a'), false), IsOk());
  EXPECT_THAT(store_.Keys(), IsEmpty());
  Process next(store_);  // the one before was killed
  EXPECT_THAT(*next.files().Unfinished(root_), ElementsAre("step"));
  EXPECT_THAT(*next.files().Unfinished("s3://bucket/jobs/on"), IsEmpty()) << "another job's prefix";
  ASSERT_THAT(next.files().RemoveUnfinished(root_ / "step"), IsOk());
  EXPECT_THAT(*next.files().Unfinished(root_), IsEmpty());
}

TEST_F(ObjectFilesTest, ATemporaryFileThatIsRemovedLeavesNoUpload) {
  std::string temporary = (root_ / "data.tmp.XXXXXX").string();
  const int fd = *files_.CreateTemporary(temporary);
  ASSERT_THAT(files_.Write(fd, Text(5000, 'a')), IsOk());
  EXPECT_THAT(*files_.Unfinished(root_), ElementsAre("data"));
  files_.Close(fd);
  ASSERT_THAT(files_.Remove(temporary), IsOk());
  EXPECT_THAT(*files_.Unfinished(root_), IsEmpty());
}

TEST_F(ObjectFilesTest, OnlyWholeObjectsAreWritten) {
  ASSERT_THAT(files_.WriteAtomic(root_ / "a", "text"), IsOk());
  EXPECT_THAT(files_.OpenToAppend(root_ / "a"), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(files_.Rename(root_ / "a", root_ / "b"), StatusIs(absl::StatusCode::kUnimplemented));
  const int fd = *files_.Create(root_ / "events");
  ASSERT_THAT(files_.Write(fd, "one"), IsOk());
  EXPECT_THAT(store_.Keys(), ElementsAre("bucket/jobs/one/a")) << "until Sync";
  ASSERT_THAT(files_.Sync(fd), IsOk());
  ASSERT_THAT(files_.Write(fd, " two"), IsOk());
  ASSERT_THAT(files_.Sync(fd), IsOk());
  EXPECT_EQ(store_.Get("bucket/jobs/one/events"), "one two");
  EXPECT_THAT(files_.WriteAt(fd, 0, "x"), StatusIs(absl::StatusCode::kUnimplemented));
  files_.Close(fd);
}

TEST_F(ObjectFilesTest, AFolderIsRemovedFromTheManifestOn) {
  for (const char* name : {"step/a", "step/manifest.json", "step/z", "step-2/a"}) {
    ASSERT_THAT(files_.WriteAtomic(root_ / name, "x"), IsOk());
  }
  Process dying(store_, 2);  // after the listing and one removal
  EXPECT_THAT(dying.files().RemoveFolder(root_ / "step"), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(*files_.List(root_ / "step"), UnorderedElementsAre("a", "z"));
  ASSERT_THAT(files_.RemoveFolder(root_ / "step"), IsOk());
  EXPECT_THAT(*files_.List(root_), ElementsAre("step-2"));
  EXPECT_THAT(files_.RemoveFolder("s3://bucket"), StatusIs(absl::StatusCode::kInvalidArgument));
}

// A checkpoint of two files, one of which takes several parts.
absl::Status Save(const Volume& volume, int64_t step, int64_t generation, CheckpointStore& store) {
  CheckpointManifest manifest{.job_uid = "uid",
                              .model_fingerprint = "f",
                              .generation = generation,
                              .step = step,
                              .rows = 100,
                              .data_epochs = 3,
                              .batch_size = 10};
  manifest.folder = CheckpointFolder({.generation = generation, .step = step});
  for (const int device : {0, 1}) {
    CheckpointFileHeader header;
    header.owner = {"uid", "f"};
    header.generation = generation;
    header.step = step;
    header.shard = device;
    MEDLEY_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::Create(volume, manifest.folder, header));
    const std::vector<float> weights(device == 0 ? 10 : 900, static_cast<float>(step));
    MEDLEY_RETURN_IF_ERROR(writer->AddDense(device, "weight", weights, {}));
    MEDLEY_ASSIGN_OR_RETURN(const CheckpointFileEntry entry, writer->Finish());
    manifest.files.push_back(entry);
  }
  MEDLEY_RETURN_IF_ERROR(store.Complete(manifest));
  return store.Prune(2);
}

// The step of the newest checkpoint, all of whose numbers are that step; 0: there is none.
int64_t Restore(Process& process) {
  const absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(process.volume(), "uid", "f");
  if (absl::IsNotFound(found.status())) return 0;
  EXPECT_THAT(found.status(), IsOk());
  if (!found.ok() || !found->manifest) return 0;
  size_t numbers = 0;
  CheckpointHandlers handlers;
  handlers.dense = [&](int32_t, std::string_view, std::span<const float> weights, std::span<const float>) {
    for (const float weight : weights) EXPECT_EQ(weight, static_cast<float>(found->manifest->step));
    numbers += weights.size();
    return absl::OkStatus();
  };
  EXPECT_THAT(ReadCheckpoint(process.volume(), *found->manifest, std::move(handlers)), IsOk());
  EXPECT_EQ(numbers, 910U);
  return found->manifest->step;
}

// Kills the process before and after every request that it sends.
TEST(ObjectCheckpointTest, WheneverTheProcessIsKilledAWholeCheckpointIsFoundAndTheRestIsRemoved) {
  int64_t most = 0;
  for (const bool carried_out : {false, true}) {
    for (int dies_at = 0;; ++dies_at) {
      SCOPED_TRACE(testing::Message() << "dies at request " << dies_at << ", carried out: " << carried_out);
      FakeStore objects;
      Process killed(objects, dies_at, carried_out);
      CheckpointStore store(killed.volume(), "uid");
      int64_t saved = 0;
      for (int64_t step = 1; step <= 3; ++step) {
        if (!Save(killed.volume(), step, 1, store).ok()) break;
        saved = step;
      }
      Process next(objects);
      const int64_t found = Restore(next);
      EXPECT_GE(found, saved);
      EXPECT_LE(found, saved + 1);
      most = std::max(most, found);
      // The next generation goes on, and after two checkpoints nothing else is left.
      CheckpointStore later(next.volume(), "uid");
      ASSERT_THAT(Save(next.volume(), found + 1, 2, later), IsOk());
      ASSERT_THAT(Save(next.volume(), found + 2, 2, later), IsOk());
      EXPECT_EQ(Restore(next), found + 2);
      EXPECT_EQ(objects.Keys().size(), 6U) << testing::PrintToString(objects.Keys());
      EXPECT_THAT(*next.files().Unfinished(kRoot), IsEmpty());
      if (killed.requests() <= dies_at) break;  // it lived to the end
      ASSERT_LT(dies_at, 500);
    }
  }
  EXPECT_EQ(most, 3);
}

// Two coordinators that believe to lead have generations of their own.
TEST(ObjectCheckpointTest, ASecondWriterSpoilsNothingOfTheNewerOne) {
  FakeStore objects;
  Process old(objects), newer(objects);
  CheckpointStore old_store(old.volume(), "uid"), newer_store(newer.volume(), "uid");
  ASSERT_THAT(Save(old.volume(), 10, 1, old_store), IsOk());
  ASSERT_THAT(Save(newer.volume(), 12, 2, newer_store), IsOk());
  for (const int64_t step : {11, 12, 13, 14}) ASSERT_THAT(Save(old.volume(), step, 1, old_store), IsOk());
  EXPECT_EQ(Restore(newer), 12) << "the newer generation counts, although its step is smaller";
  ASSERT_THAT(Save(newer.volume(), 13, 2, newer_store), IsOk());
  EXPECT_EQ(Restore(newer), 13);
}

TEST(ObjectCheckpointTest, ADamagedCheckpointIsNotRestored) {
  FakeStore objects;
  Process process(objects);
  CheckpointStore store(process.volume(), "uid");
  ASSERT_THAT(Save(process.volume(), 1, 1, store), IsOk());
  ASSERT_THAT(Save(process.volume(), 2, 1, store), IsOk());
  const std::string key = "bucket/jobs/one/step-00000002-e1/dense-e1-t1.mck";
  std::string bytes = objects.Get(key);
  ASSERT_GT(bytes.size(), 2000U);
  bytes[1500] ^= 1;
  objects.Put(key, bytes);
  EXPECT_EQ(Restore(process), 1);
}

TEST(ObjectCheckpointTest, PublishingReadsHeadersAndNotTheWholeCheckpoint) {
  FakeStore objects;
  Process process(objects);
  CheckpointStore store(process.volume(), "uid");
  ASSERT_THAT(Save(process.volume(), 1, 1, store), IsOk());
  EXPECT_LE(objects.reads(), 3) << "a piece of each file, and the manifest";
}

TEST(ObjectCheckpointTest, ACheckpointIsCopiedFromAVolumeIntoTheStoreAndBack) {
  const std::filesystem::path folder = *base::MakeTempDir("object-import");
  const Volume disk(folder / "first");
  CheckpointStore first(disk, "uid");
  ASSERT_THAT(Save(disk, 5, 1, first), IsOk());
  FakeStore objects;
  Process process(objects);
  const auto into = ImportCheckpoint(process.volume(), disk.root(), {"second", "f", 3, ""});
  ASSERT_THAT(into.status(), IsOk());
  ASSERT_THAT(CheckpointStore(process.volume(), "second").Complete(*into), IsOk());
  EXPECT_THAT(VerifyCheckpoint(process.volume(), *into), IsOk());
  const Volume other(folder / "third", std::shared_ptr<Files>(std::shared_ptr<void>(), &process.files()));
  const auto back = ImportCheckpoint(other, std::string(kRoot) + "/" + into->folder, {"third", "f", 3, ""});
  ASSERT_THAT(back.status(), IsOk());
  EXPECT_THAT(VerifyCheckpoint(Volume(folder / "third"), *back), IsOk());
  base::RemoveTempDir(folder);
}

TEST_F(ObjectFilesTest, AFolderIsFetchedWithTheFoldersBelow) {
  ASSERT_THAT(files_.WriteAtomic(root_ / "export/model.json", "{}"), IsOk());
  ASSERT_THAT(files_.WriteAtomic(root_ / "export/numpy/a.npy", Text(5000, 'a')), IsOk());
  const std::filesystem::path folder = *base::MakeTempDir("object-fetch");
  ASSERT_THAT(FetchFolder(process_.volume(), root_ / "export", folder / "model"), IsOk());
  EXPECT_EQ(*base::ReadFile(folder / "model/numpy/a.npy"), Text(5000, 'a'));
  EXPECT_THAT(FetchFolder(process_.volume(), root_ / "none", folder / "none"), StatusIs(absl::StatusCode::kNotFound));
  store_.Put("bucket/jobs/one/export/../../evil", "x");
  EXPECT_THAT(FetchFolder(process_.volume(), root_ / "export", folder / "model"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'..' cannot be the name of a file")));
  EXPECT_FALSE(std::filesystem::exists(folder / "evil"));
  base::RemoveTempDir(folder);
}

TEST_F(ObjectFilesTest, AMissingRightIsFoundAndNothingIsLeft) {
  EXPECT_THAT(CheckRights(process_.volume()), IsOk());
  EXPECT_THAT(store_.Keys(), IsEmpty());
  for (const char* method : {"PUT", "GET", "DELETE"}) {
    store_.fault = [method](const http_client::Request& request) { return request.method == method ? 403 : 0; };
    EXPECT_THAT(CheckRights(process_.volume()), StatusIs(absl::StatusCode::kPermissionDenied)) << method;
  }
  EXPECT_THAT(CheckRights(Volume("/nowhere")), IsOk()) << "a folder is not tried";
}

TEST_F(ObjectFilesTest, AStoreThatDoesNotListUploadsIsAskedOnce) {
  store_.fault = [](const http_client::Request& request) {
    return request.method == "GET" && request.url.find("uploads") != std::string::npos ? 403 : 0;
  };
  EXPECT_THAT(files_.Unfinished(root_), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(*files_.Unfinished(root_), IsEmpty());
  EXPECT_THAT(files_.RemoveUnfinished(root_), IsOk());
}

}  // namespace
}  // namespace medley::worker
