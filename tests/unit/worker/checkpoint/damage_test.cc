// Every kind of damage to a checkpoint: the one before is found, with the reason; when both are damaged, none is.
// Pruning never counts a damaged one, and removes it whatever it became.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "common/base/file.h"
#include "common/base/hasher.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/checkpoint/format.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/store.h"
#include "worker/checkpoint/writer.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using Why = RejectedCheckpoint::Why;

void Overwrite(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}
void Flip(const fs::path& file) {
  std::string bytes = *base::ReadFile(file);
  bytes[bytes.size() / 2] ^= 1;
  Overwrite(file, bytes);
}
void Halve(const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }
void Replace(const fs::path& path, const std::function<void(const fs::path&)>& by) {
  base::RemoveTempDir(path);
  by(path);
}
void BecomeFolder(const fs::path& path) {
  fs::create_directory(path);
  std::ofstream(path / "inside") << "x";
}
void LinkToItself(const fs::path& path) { fs::create_symlink(path.filename(), path); }
void LinkToNothing(const fs::path& path) { fs::create_symlink("absent", path); }
void LinkToZeros(const fs::path& path) { fs::create_symlink("/dev/zero", path); }
void BecomePipe(const fs::path& path) { ASSERT_EQ(mkfifo(path.c_str(), 0644), 0); }

// A manifest with this text and the digest that belongs to it, as another tenant could write one.
void Forge(const fs::path& manifest, const std::string& text) {
  base::Hasher hasher;
  hasher.Add(text);
  Overwrite(manifest, text + "xxh3 " + hasher.Hex() + "\n");
}
std::string ManyFiles(size_t count) {
  std::string text = R"({"format": 2, "jobUid": "uid", "modelFingerprint": "print", "generation": 3, "step": 9,
    "ledger": {"rows": 1000, "dataEpochs": 2, "batchSize": 10}, "folder": "step-00000009-e3", "files": [)";
  for (size_t i = 0; i < count; ++i) {
    text += (i == 0 ? "" : ",") + fmt::format(R"({{"name":"f{}","bytes":1,"xxh3":""}})", i);
  }
  return text + "]}\n";
}

struct Damage {
  const char* name;
  std::function<void(const fs::path& folder)> apply;  // to a checkpoint of two files
  const char* reason;                                 // nullptr: the folder is absent, nothing is rejected
  Why why = Why::kUnusable;
};

const char kPart[] = "rows-e3-1.mck";

std::vector<Damage> Damages() {
  const auto manifest = [](const auto& change) {
    return [change](const fs::path& folder) { change(folder / "manifest.json"); };
  };
  const auto part = [](const auto& change) { return [change](const fs::path& folder) { change(folder / kPart); }; };
  const auto instead = [](const auto& by) { return [by](const fs::path& path) { Replace(path, by); }; };
  const auto of_step_5 = [](const std::string& name) {
    return [name](const fs::path& folder) {
      Overwrite(folder / name, *base::ReadFile(folder.parent_path() / "step-00000005-e3" / name));
    };
  };
  return {
      {"manifest cut off", manifest(Halve), "not a JSON object"},
      {"manifest flipped", manifest(Flip), "its digest is"},
      {"manifest empty", manifest([](const fs::path& path) { Overwrite(path, ""); }), "not a JSON object"},
      {"manifest missing", manifest([](const fs::path& path) { fs::remove(path); }), "no manifest", Why::kIncomplete},
      {"manifest huge", manifest([](const fs::path& path) { fs::resize_file(path, size_t{1} << 34); }),
       "a manifest at"},
      {"manifest of another step", of_step_5("manifest.json"), "does not match step 5"},
      {"manifest a folder", manifest(instead(BecomeFolder)), "not a regular file"},
      {"manifest a pipe", manifest(instead(BecomePipe)), "not a regular file"},
      {"manifest a circle", manifest(instead(LinkToItself)), "Too many levels of symbolic links"},
      {"manifest zeros", manifest(instead(LinkToZeros)), "not a regular file"},
      {"manifest deep", manifest([](const fs::path& path) { Forge(path, std::string(100'000, '[')); }), "JSON"},
      {"manifest of values", manifest([](const fs::path& path) {
         std::string text = "[0";
         for (int i = 0; i < 100'000; ++i) text += ",0";
         Forge(path, text + "]");
       }),
       "JSON"},
      {"manifest of files", manifest([](const fs::path& path) { Forge(path, ManyFiles(kMaxManifestFiles + 1)); }),
       "at most 8192"},
      {"part cut off", part(Halve), kPart},
      {"part flipped", part(Flip), kPart},
      {"part empty", part([](const fs::path& path) { Overwrite(path, ""); }), kPart},
      {"part longer", part([](const fs::path& path) { fs::resize_file(path, fs::file_size(path) + 1); }), kPart},
      {"part missing", part([](const fs::path& path) { fs::remove(path); }), "the file does not exist"},
      {"part of another step", of_step_5(kPart), "the file is of step 5"},
      {"part a folder", part(instead(BecomeFolder)), "not a regular file"},
      {"part a pipe", part(instead(BecomePipe)), "not a regular file"},
      {"part a circle", part(instead(LinkToItself)), "Too many levels of symbolic links"},
      {"part a link to nothing", part(instead(LinkToNothing)), "the file does not exist"},
      {"part zeros", part(instead(LinkToZeros)), "not a regular file"},
      {"folder a file", instead([](const fs::path& path) { Overwrite(path, "x"); }), "Not a directory"},
      {"folder a circle", instead(LinkToItself), "Too many levels of symbolic links"},
      {"folder empty", instead([](const fs::path& path) { fs::create_directory(path); }), "no manifest",
       Why::kIncomplete},
      {"folder missing", [](const fs::path& folder) { base::RemoveTempDir(folder); }, nullptr},
  };
}

class DamageTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    written_ = *base::MakeTempDir("medley-damage-written");
    for (const int64_t step : {3, 5, 7, 9, 11, 13}) Write(step);
  }
  static void TearDownTestSuite() { base::RemoveTempDir(written_); }
  void SetUp() override {
    root_ = *base::MakeTempDir("medley-damage");
    Add(5);
    Add(7);
    Add(9);
    fs::rename(root_ / Folder(5), root_ / "step-5.kept");  // not a checkpoint, but its files are used
  }
  void TearDown() override { base::RemoveTempDir(root_); }

  static std::string Folder(int64_t step) { return CheckpointFolder({.generation = 3, .step = step}); }
  static void Write(int64_t step) {
    CheckpointManifest manifest{.job_uid = "uid",
                                .model_fingerprint = "print",
                                .generation = 3,
                                .step = step,
                                .rows = 1000,
                                .data_epochs = 2,
                                .batch_size = 10,
                                .folder = Folder(step),
                                .files = {},
                                .origin_uid = "",
                                .origin_generation = 0};
    for (int32_t shard = 0; shard < 2; ++shard) {
      auto writer = *CheckpointWriter::Create(written_, manifest.folder,
                                              {{"uid", "print"}, 3, step, CheckpointFileKind::kRows, shard});
      EXPECT_THAT(writer->AddRows(0, 4, std::vector<uint64_t>{1, 2}, std::vector<float>(8, 0.5F)), IsOk());
      manifest.files.push_back(*writer->Finish());
    }
    EXPECT_THAT(CheckpointStore(written_, "uid").Complete(manifest), IsOk());
  }
  // Faster than Write, which waits for the disk.
  void Add(int64_t step) { fs::copy(written_ / Folder(step), root_ / Folder(step), fs::copy_options::recursive); }
  void Do(const Damage& damage, int64_t step) {
    fs::rename(root_ / "step-5.kept", root_ / Folder(5));
    damage.apply(root_ / Folder(step));
    fs::rename(root_ / Folder(5), root_ / "step-5.kept");
  }
  FoundCheckpoint Find() const {
    auto found = FindCheckpoint(root_, "uid", "print");
    EXPECT_THAT(found, IsOk());
    return found.ok() ? *std::move(found) : FoundCheckpoint();
  }
  void Restart() {
    TearDown();
    SetUp();
  }

  static inline fs::path written_;
  fs::path root_;
};

TEST_F(DamageTest, OfTheNewestCheckpointTheOneBeforeIsTaken) {
  for (const Damage& damage : Damages()) {
    SCOPED_TRACE(damage.name);
    Do(damage, 9);
    const FoundCheckpoint found = Find();
    ASSERT_TRUE(found.manifest);
    EXPECT_EQ(found.manifest->step, 7);
    ASSERT_EQ(found.rejected.size(), damage.reason == nullptr ? 0u : 1u);
    if (damage.reason != nullptr) {
      EXPECT_THAT(found.rejected[0].reason, HasSubstr(damage.reason));
      EXPECT_EQ(found.rejected[0].why, damage.why);  // never an error that may pass
    }
    Restart();
  }
}

TEST_F(DamageTest, OfBothCheckpointsIsSaidOfBoth) {
  for (const Damage& damage : Damages()) {
    SCOPED_TRACE(damage.name);
    Do(damage, 7);
    Do(damage, 9);
    const FoundCheckpoint found = Find();
    EXPECT_FALSE(found.manifest);
    ASSERT_EQ(found.rejected.size(), damage.reason == nullptr ? 0u : 2u);
    for (const RejectedCheckpoint& rejected : found.rejected) EXPECT_EQ(rejected.why, damage.why) << rejected.reason;
    Restart();
  }
}

TEST_F(DamageTest, PruningKeepsTwoThatVerifyAndRemovesTheDamagedOneLater) {
  for (const Damage& damage : Damages()) {
    SCOPED_TRACE(damage.name);
    CheckpointStore store(root_, "uid");
    ASSERT_THAT(store.Prune(2), IsOk());
    Do(damage, 9);
    Add(11);
    EXPECT_THAT(store.Prune(2), IsOk());
    EXPECT_TRUE(fs::exists(root_ / Folder(7) / "manifest.json"));  // 9 does not count
    if (damage.reason != nullptr && damage.why == Why::kUnusable) {
      EXPECT_THAT(store.damaged(), ElementsAre(HasSubstr(damage.reason)));
    }
    Add(13);
    EXPECT_THAT(store.Prune(2), IsOk());
    EXPECT_FALSE(fs::exists(fs::symlink_status(root_ / Folder(9))));
    EXPECT_FALSE(fs::exists(root_ / Folder(7)));
    EXPECT_EQ(Find().manifest->step, 13);
    Restart();
  }
}

// What one member could not restore verifies for the coordinator, but must not push out the one before.
TEST_F(DamageTest, PruningDoesNotCountWhatCouldNotBeRestored) {
  Add(11);
  ASSERT_THAT(CheckpointStore(root_, "uid").Prune(2, {Folder(11)}), IsOk());
  EXPECT_TRUE(fs::exists(root_ / Folder(7)));
  ASSERT_THAT(CheckpointStore(root_, "uid").Prune(2), IsOk());
  EXPECT_FALSE(fs::exists(root_ / Folder(7)));
}

TEST_F(DamageTest, AFolderThatIsKnownToBeUnusableIsNotTaken) {
  const auto found = FindCheckpoint(root_, "uid", "print", {{Folder(9), "t0-0 could not restore its part"}});
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->manifest->step, 7);
  EXPECT_EQ(found->rejected[0].reason, "step-00000009-e3: t0-0 could not restore its part");
}

// A user may lack the permission for a while: that is not damage.
class DeniedFiles final : public Files {
 public:
  absl::StatusOr<int> OpenToRead(const fs::path& path) override {
    if (path.string().find("step-00000009") != std::string::npos) return base::ErrnoStatus(EACCES, path.string());
    return Files::OpenToRead(path);
  }
};

TEST_F(DamageTest, ACheckpointWithoutPermissionIsUnreadableAndHindersNoPruning) {
  DeniedFiles files;
  const auto found = FindCheckpoint({root_, files}, "uid", "print");
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->manifest->step, 7);
  EXPECT_EQ(found->rejected[0].why, Why::kUnreadable);
  Add(11);
  Add(3);
  EXPECT_THAT(CheckpointStore({root_, files}, "uid").Prune(2), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_TRUE(fs::exists(root_ / Folder(9)));
  EXPECT_TRUE(fs::exists(root_ / Folder(7)));
  EXPECT_FALSE(fs::exists(root_ / Folder(3)));
}

// The digests of a forged checkpoint are right, but what its file says does not fit into the file.
TEST_F(DamageTest, ASectionLongerThanItsFileTakesNoMemory) {
  namespace format = checkpoint_format;
  const CheckpointFileHeader header{{"uid", "print"}, 3, 9, CheckpointFileKind::kRows, 1};
  std::string bytes = *EncodeHeader(header);
  const format::SectionHeader section{.kind = format::kRows,
                                      .id = 0,
                                      .width = 1,
                                      .name_bytes = 0,
                                      .count_a = format::kMaxFloats,
                                      .count_b = format::kMaxFloats};
  format::Append(bytes, section);
  format::Append(bytes, format::Crc32(0, &section, sizeof section));
  bytes.append(1000, 'x');
  Overwrite(root_ / Folder(9) / kPart, bytes);
  CheckpointManifest manifest = *ReadManifest(root_, Folder(9));
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (const bool wanted : {true, false}) {
    CheckpointHandlers handlers;
    handlers.rows = [](auto&&...) { return absl::OkStatus(); };
    handlers.wanted_rows = [wanted](int32_t) { return wanted; };
    EXPECT_THAT(ReadCheckpoint(root_, manifest, std::move(handlers)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("rows-e3-1.mck: the file is truncated")));
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100'000) << "kilobytes";
}

}  // namespace
}  // namespace medley::worker
