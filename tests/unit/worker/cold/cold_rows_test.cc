// Tests rows on the disk: what is read, a view of one moment, folders of killed processes, full and damaged disks.
#include "worker/cold/cold_rows.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/cold/key_index.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using ::testing::HasSubstr;

using Rows = std::map<std::pair<uint32_t, uint64_t>, std::string>;

std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ColdRowsTest : public testing::Test {
 protected:
  ColdRowsTest() : folder_(base::MakeTempDir("cold-rows").value()) {}
  ~ColdRowsTest() override { base::RemoveTempDir(folder_); }

  // Two tables.
  std::unique_ptr<ColdRows> Open(size_t row_bytes = 3, int64_t most_bytes = 0) {
    auto rows = ColdRows::Open({.folder = folder_, .row_bytes = {row_bytes, row_bytes}, .most_bytes = most_bytes});
    EXPECT_THAT(rows.status(), IsOk());
    return *std::move(rows);
  }
  // Changes a bit each `step` bytes of the files with this extension. How many it has changed.
  static int Damage(const ColdRows& cold, const char* extension, int64_t step) {
    int damaged = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cold.folder())) {
      if (entry.path().extension() != extension) continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      for (int64_t at = step; at < static_cast<int64_t>(entry.file_size()); at += step, ++damaged) {
        file.seekg(at);
        const char byte = static_cast<char>(file.get());
        file.seekp(at);
        file.put(static_cast<char>(byte ^ 0x10));
      }
    }
    return damaged;
  }
  size_t Folders() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  const std::filesystem::path folder_;
};

absl::Status Put(ColdRows& cold, const Rows& rows) {
  std::vector<ColdRows::Row> list;
  for (const auto& [of, text] : rows) list.push_back({of.first, of.second, BytesOf(text)});
  return cold.Put(list);
}

// Adds the rows that are found to `rows`.
absl::Status Get(const ColdRows& cold, uint32_t table, const std::vector<uint64_t>& keys, Rows& rows) {
  ColdRows::Copies copies;
  const absl::Status status = cold.Get(table, keys, copies);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (copies.Has(i)) rows[{table, keys[i]}] = TextOf(copies.Of(i));
  }
  return status;
}

Rows All(const ColdRows::View& view, uint32_t table) {
  Rows rows;
  const auto cursor = view.Open(table);
  uint64_t key = 0;
  std::span<const std::byte> bytes;
  while (cursor->Next(key, bytes)) rows[{table, key}] = TextOf(bytes);
  EXPECT_THAT(cursor->status(), IsOk());
  return rows;
}

std::string RandomText(base::Rng& rng, size_t bytes) {
  std::string text(bytes, ' ');
  for (char& c : text) c = static_cast<char>(rng.Below(256));
  return text;
}

// Rows of three sizes, some with keys that are close and some with any, written anew many times, so that segments are
// cleaned and the index grows.
TEST_F(ColdRowsTest, FindsWhatWasWrittenLast) {
  const std::vector<size_t> sizes = {8, 136, 5000};
  auto opened = ColdRows::Open({.folder = folder_, .row_bytes = sizes});
  ASSERT_THAT(opened.status(), IsOk());
  ColdRows& cold = **opened;
  base::Rng rng(1);
  Rows expected;
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 4000; ++i) keys.insert(keys.end(), {i, base::Mix64(i)});
  for (int round = 0; round < 200; ++round) {
    Rows some;
    for (int i = 0; i < 200; ++i) {
      const auto table = static_cast<uint32_t>(rng.Below(3));
      some[{table, keys[rng.Below(table == 2 ? 300 : keys.size())]}] = RandomText(rng, sizes[table]);
    }
    std::vector<ColdRows::Row> list;
    for (const auto& [of, text] : some) {
      const bool may_say = rng.Below(2) == 0;
      list.push_back({of.first, of.second, BytesOf(text), may_say && expected.contains(of)});
    }
    ASSERT_THAT(cold.Put(list), IsOk());
    for (const auto& [of, text] : some) expected[of] = text;
  }
  const auto view = cold.TakeView();
  int64_t bytes = 0;
  for (uint32_t table = 0; table < 3; ++table) {
    Rows found, of_table;
    ASSERT_THAT(Get(cold, table, keys, found), IsOk());
    for (const auto& [of, text] : expected) {
      if (of.first == table) of_table[of] = text;
      if (of.first == table) bytes += static_cast<int64_t>(16 + text.size());
    }
    EXPECT_EQ(found, of_table);
    EXPECT_EQ(All(*view, table), of_table);
  }
  EXPECT_LT(cold.DiskBytes(), bytes * 2 + 3 * (int64_t{4} << 20)) << "what was written over takes no room";
}

TEST_F(ColdRowsTest, AViewStaysAsItWas) {
  const auto cold = Open();
  ASSERT_THAT(Put(*cold, {{{1, 5}, "old"}, {{1, 6}, "one"}}), IsOk());
  const auto view = cold->TakeView();
  ASSERT_THAT(Put(*cold, {{{1, 5}, "new"}, {{1, 7}, "two"}}), IsOk());
  EXPECT_EQ(All(*view, 1), (Rows{{{1, 5}, "old"}, {{1, 6}, "one"}}));
  EXPECT_EQ(All(*view, 0), Rows());
}

// Segments of the view are cleaned meanwhile, and their room is used again only after it.
TEST_F(ColdRowsTest, AViewStaysAsItWasWhileAllRowsAreWrittenAnew) {
  constexpr size_t kBytes = 4000;
  const auto cold = Open(kBytes);
  base::Rng rng(2);
  const auto write = [&] {
    Rows rows;
    for (uint64_t key = 0; key < 1000; ++key) rows[{1, key}] = RandomText(rng, kBytes);
    EXPECT_THAT(Put(*cold, rows), IsOk());
    return rows;
  };
  const Rows first = write();
  auto view = cold->TakeView();
  Rows last;
  for (int i = 0; i < 4; ++i) last = write();
  EXPECT_EQ(All(*view, 1), first);
  const int64_t with_view = cold->DiskBytes();
  view.reset();
  EXPECT_LE(cold->DiskBytes(), with_view - int64_t{1000} * kBytes);
  EXPECT_EQ(All(*cold->TakeView(), 1), last);
  for (int i = 0; i < 4; ++i) last = write();
  EXPECT_EQ(All(*cold->TakeView(), 1), last);
}

TEST_F(ColdRowsTest, TheFolderIsRemoved) {
  {
    const auto cold = Open();
    ASSERT_THAT(Put(*cold, {{{1, 5}, "row"}}), IsOk());
    EXPECT_EQ(Folders(), 1U);
  }
  EXPECT_EQ(Folders(), 0U);
}

TEST_F(ColdRowsTest, WhatAKilledProcessLeavesIsRemovedAndWhatALiveOneUsesIsNot) {
  const auto live = Open();
  ASSERT_THAT(Put(*live, {{{1, 5}, "row"}}), IsOk());
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto left = Open();
    const char byte = Put(*left, {{{1, 5}, "row"}}).ok() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  EXPECT_EQ(Folders(), 2U);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(Folders(), 2U);
  const auto next = Open();
  EXPECT_EQ(Folders(), 2U) << "its own and that of the live store";
  EXPECT_EQ(All(*live->TakeView(), 1).size(), 1U);
}

TEST_F(ColdRowsTest, ABudgetThatIsFullIsASentenceAndNothingIsLost) {
  const auto cold = Open(4096, /*most_bytes=*/256 << 10);
  Rows rows;
  absl::Status full;
  for (uint64_t key = 0; full.ok() && key < 1000; ++key) {
    rows[{1, key}] = std::string(4096, 'a');
    full = Put(*cold, {{{1, key}, rows[{1, key}]}});
    if (!full.ok()) rows.erase({1, key});
  }
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(std::string(full.message()), HasSubstr("writing cold rows in " + folder_.string()));
  EXPECT_THAT(std::string(full.message()), HasSubstr("they may take 262144 bytes"));
  EXPECT_GT(rows.size(), 40U);
  EXPECT_EQ(All(*cold->TakeView(), 1), rows);
}

// A budget that is little more than the rows need: what was written over makes room.
TEST_F(ColdRowsTest, ABudgetIsEnoughForRowsThatAreWrittenAnew) {
  const auto cold = Open(4096, /*most_bytes=*/8 << 20);
  Rows rows;
  base::Rng rng(5);
  for (uint64_t key = 0; key < 1200; ++key) rows[{1, key}] = std::string(4096, 'a');
  ASSERT_THAT(Put(*cold, rows), IsOk());
  for (int i = 0; i < 10000; ++i) {
    const std::pair<uint32_t, uint64_t> of = {1, rng.Below(1200)};
    rows[of] = RandomText(rng, 4096);
    ASSERT_THAT(Put(*cold, {{of, rows[of]}}), IsOk()) << i;
    ASSERT_LE(cold->DiskBytes(), 8 << 20);
  }
  EXPECT_EQ(All(*cold->TakeView(), 1), rows);
}

// A limit for the size of files fails as a full disk does, in the middle of a record and in the index.
TEST_F(ColdRowsTest, ADiskThatBecomesFullIsASentenceAndNothingIsLost) {
  signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t bytes : {rlim_t{100'001}, rlim_t{1'500'000}}) {
    const size_t row_bytes = bytes < 1'000'000 ? 1 : 150;  // the index is as large as the rows, or smaller
    const auto cold = Open(row_bytes);
    base::Rng rng(7);
    Rows rows;
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit limit = {bytes, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    absl::Status full;
    Rows some;
    for (uint64_t key = 0; full.ok() && key < 100'000;) {
      some.clear();
      for (int i = 0; i < 100; ++i, ++key) some[{1, base::Mix64(key)}] = RandomText(rng, row_bytes);
      full = Put(*cold, some);
      if (full.ok()) rows.insert(some.begin(), some.end());
    }
    const absl::Status still = Put(*cold, some);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_THAT(std::string(full.message()), HasSubstr(folder_.string()));
    EXPECT_THAT(std::string(full.message()), HasSubstr("the disk is full: File too large"));
    EXPECT_THAT(still, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_GT(rows.size(), 1000U);
    for (const auto& [of, text] : rows) {
      Rows found;
      ASSERT_THAT(Get(*cold, 1, {of.second}, found), IsOk());
      ASSERT_EQ(found, (Rows{{of, text}}));
    }
    ASSERT_THAT(Put(*cold, some), IsOk()) << "there is room again";
    rows.insert(some.begin(), some.end());
    EXPECT_EQ(All(*cold->TakeView(), 1), rows);
  }
}

TEST_F(ColdRowsTest, ADamagedRowIsASentence) {
  constexpr size_t kBytes = 100;
  const auto cold = Open(kBytes);
  Rows rows;
  base::Rng rng(3);
  for (uint64_t key = 0; key < 4000; ++key) rows[{1, key}] = RandomText(rng, kBytes);
  ASSERT_THAT(Put(*cold, rows), IsOk());
  ASSERT_GT(Damage(*cold, ".rows", 1501), 200);
  int whole = 0;
  absl::Status first;
  for (uint64_t key = 0; key < 4000; ++key) {
    Rows found;
    const absl::Status status = Get(*cold, 1, {key}, found);
    EXPECT_TRUE(found.empty() || found == (Rows{{{1, key}, rows[{1, key}]}})) << key;
    whole += static_cast<int>(found.size());
    if (first.ok()) first = status;
  }
  EXPECT_GT(whole, 3000);
  EXPECT_LT(whole, 3900);
  EXPECT_THAT(first, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(std::string(first.message()), HasSubstr("reading cold rows in " + folder_.string()));
  EXPECT_THAT(std::string(first.message()), HasSubstr("the disk has damaged them"));
  const auto view = cold->TakeView();
  const auto cursor = view->Open(1);
  uint64_t key = 0;
  std::span<const std::byte> bytes;
  while (cursor->Next(key, bytes)) EXPECT_EQ(TextOf(bytes), (rows[{1, key}]));
  EXPECT_THAT(cursor->status(), StatusIs(absl::StatusCode::kDataLoss));
}

// A row that the index does not find would be taken for a new one.
TEST_F(ColdRowsTest, ADamagedIndexIsASentence) {
  const auto cold = Open();
  Rows rows;
  for (uint64_t key = 0; key < 4000; ++key) rows[{1, key}] = "row";
  ASSERT_THAT(Put(*cold, rows), IsOk());
  ASSERT_GT(Damage(*cold, ".index", 701), 50);
  int found = 0, failed = 0;
  for (uint64_t key = 0; key < 4000; ++key) {
    Rows row;
    const absl::Status status = Get(*cold, 1, {key}, row);
    found += static_cast<int>(row.size());
    if (status.ok()) continue;
    ++failed;
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kDataLoss));
    ASSERT_THAT(std::string(status.message()), HasSubstr("the disk has damaged it"));
  }
  EXPECT_GT(failed, 100);
  EXPECT_EQ(found + failed, 4000);
}

// Rows are copied from a mapping of the file while the system has it in memory.
TEST_F(ColdRowsTest, RowsWhosePagesTheSystemHasTakenBackAreReadFromTheDisk) {
  constexpr size_t kBytes = 500;
  const auto cold = Open(kBytes);
  Rows rows;
  base::Rng rng(11);
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; key < 4000; ++key) {
    rows[{1, key}] = RandomText(rng, kBytes);
    keys.push_back(key);
  }
  ASSERT_THAT(Put(*cold, rows), IsOk());
  const int file = open((cold->folder() / "table-1.rows").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  for (int round = 0; round < 4; ++round) {
    if (round % 2 == 0) {
      ASSERT_EQ(fdatasync(file), 0);
      ASSERT_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    }
    Rows found;
    EXPECT_THAT(Get(*cold, 1, keys, found), IsOk());
    EXPECT_EQ(found, rows);
    Rows more;
    for (uint64_t key = 0; key < 4000; key += 7) more[{1, key}] = RandomText(rng, kBytes);
    ASSERT_THAT(Put(*cold, more), IsOk());
    for (const auto& [of, text] : more) rows[of] = text;
  }
  close(file);
}

TEST_F(ColdRowsTest, AFileThatIsCutIsASentence) {
  const auto cold = Open();
  ASSERT_THAT(Put(*cold, {{{1, 5}, "row"}}), IsOk());
  std::filesystem::resize_file(cold->folder() / "table-1.rows", 18);
  Rows found;
  const absl::Status status = Get(*cold, 1, {5}, found);
  EXPECT_EQ(found, Rows());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the file is too short"));
}

// Keys with equal hashes are other rows, and so many of them that no page holds them are refused.
TEST_F(ColdRowsTest, KeysWithEqualHashesAreKeptApart) {
  const auto index = KeyIndex::Create(folder_ / "index");
  ASSERT_THAT(index.status(), IsOk());
  constexpr uint32_t kHash = 0xABCDEF01;
  uint32_t added = 0;
  absl::Status status;
  while (status.ok() && added < 1000) status = (*index)->Add(kHash, ++added);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(std::string(status.message()), HasSubstr("too many keys have equal hashes"));
  EXPECT_GT(added, 300U);
  ASSERT_THAT((*index)->Move(kHash, 7, 7007), IsOk());
  KeyIndex::Places places;
  ASSERT_THAT((*index)->Find(kHash, places), IsOk());
  std::set<uint32_t> expected = {7007};
  for (uint32_t place = 1; place < added; ++place) expected.insert(place);
  expected.erase(7);
  EXPECT_EQ(std::set<uint32_t>(places.begin(), places.end()), expected);
  ASSERT_THAT((*index)->Add(kHash + 1, 5), StatusIs(absl::StatusCode::kOk));
  places.clear();
  ASSERT_THAT((*index)->Find(kHash + 1, places), IsOk());
  EXPECT_EQ(places.size(), 1U);
}

TEST_F(ColdRowsTest, AFolderThatCannotBeMadeIsASentence) {
  std::ofstream(folder_ / "file") << "no folder";
  const auto cold = ColdRows::Open({.folder = folder_ / "file", .row_bytes = {8}});
  EXPECT_THAT(cold.status(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(cold.status().message()), HasSubstr("creating a folder in " + (folder_ / "file").string()));
}

}  // namespace
}  // namespace medley::worker
