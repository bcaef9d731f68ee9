// Tests rows on the disk: what is read, a view of one moment, folders of killed processes, full and damaged disks.
#include "worker/cold/cold_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/cold/scratch_folder.h"

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

  std::unique_ptr<ColdRows> Open(int64_t most_bytes = 0) {
    auto rows = ColdRows::Open({.folder = folder_, .memory_bytes = ColdRows::kLeastMemory, .most_bytes = most_bytes});
    EXPECT_THAT(rows.status(), IsOk());
    return *std::move(rows);
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

Rows All(const ColdRows::View& view, uint32_t table) {
  Rows rows;
  const auto cursor = view.Open(table);
  uint64_t key = 0;
  std::span<const std::byte> bytes;
  while (cursor->Next(key, bytes)) rows[{table, key}] = TextOf(bytes);
  EXPECT_THAT(cursor->status(), IsOk());
  return rows;
}

TEST_F(ColdRowsTest, FindsWhatWasWrittenLast) {
  const auto cold = Open();
  base::Rng rng(1);
  Rows expected;
  for (int round = 0; round < 20; ++round) {
    Rows some;
    for (int i = 0; i < 500; ++i) {
      const auto table = static_cast<uint32_t>(rng.Below(3));
      some[{table, rng.Below(2) == 0 ? rng.Below(1000) : base::Mix64(rng.Below(1000))}] =
          std::string(1 + rng.Below(200), static_cast<char>('a' + rng.Below(26)));
    }
    ASSERT_THAT(Put(*cold, some), IsOk());
    for (const auto& [of, text] : some) expected[of] = text;
    if (round % 5 == 0) {
      ASSERT_THAT(cold->Flush(), IsOk());
    }
  }
  for (uint32_t table = 0; table < 4; ++table) {
    std::vector<uint64_t> keys;
    for (uint64_t key = 0; key < 1000; ++key) keys.insert(keys.end(), {key, base::Mix64(key)});
    Rows found;
    ASSERT_THAT(cold->Get(table, keys, [&](size_t i, auto bytes) { found[{table, keys[i]}] = TextOf(bytes); }), IsOk());
    Rows of_table;
    for (const auto& [of, text] : expected) {
      if (of.first == table) of_table[of] = text;
    }
    EXPECT_EQ(found, of_table);
    EXPECT_EQ(All(*cold->TakeView(), table), of_table);
  }
}

TEST_F(ColdRowsTest, AViewStaysAsItWas) {
  const auto cold = Open();
  ASSERT_THAT(Put(*cold, {{{1, 5}, "old"}, {{1, 6}, "other"}}), IsOk());
  const auto view = cold->TakeView();
  ASSERT_THAT(Put(*cold, {{{1, 5}, "new"}, {{1, 7}, "later"}}), IsOk());
  ASSERT_THAT(cold->Flush(), IsOk());
  EXPECT_EQ(All(*view, 1), (Rows{{{1, 5}, "old"}, {{1, 6}, "other"}}));
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
    const auto left = ScratchFolder::Make(folder_, ColdRows::kPrefix);  // RocksDB does not work after a fork
    std::ofstream(left.ok() ? left->path() / "rows" : "") << "rows";
    const char byte = left.ok() && std::filesystem::exists(left->path() / "rows") ? 'y' : 'n';
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
  const auto cold = Open(/*most_bytes=*/256 << 10);
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
  EXPECT_GT(rows.size(), 10U);
  EXPECT_EQ(All(*cold->TakeView(), 1), rows);
}

TEST_F(ColdRowsTest, ADamagedBlockIsASentence) {
  const auto cold = Open();
  Rows rows;
  base::Rng rng(3);
  for (uint64_t key = 0; key < 4000; ++key) {
    std::string& text = rows[{1, key}];
    for (int i = 0; i < 100; ++i) text += static_cast<char>(rng.Below(256));
  }
  ASSERT_THAT(Put(*cold, rows), IsOk());
  ASSERT_THAT(cold->Flush(), IsOk());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cold->folder())) {
    if (entry.path().extension() != ".sst") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    for (int64_t at = 1000; at < static_cast<int64_t>(entry.file_size()) * 3 / 4; at += 1500) {
      file.seekg(at);
      const char byte = static_cast<char>(file.get());
      file.seekp(at);
      file.put(static_cast<char>(byte ^ 0x10));
    }
  }
  absl::Status status;
  for (uint64_t key = 0; status.ok() && key < 4000; ++key) {
    status = cold->Get(1, std::vector{key}, [&](size_t, auto bytes) { EXPECT_EQ(TextOf(bytes), (rows[{1, key}])); });
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(std::string(status.message()), HasSubstr("reading cold rows in " + folder_.string()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the disk has damaged them"));
}

TEST_F(ColdRowsTest, AFolderThatCannotBeMadeIsASentence) {
  std::ofstream(folder_ / "file") << "no folder";
  const auto cold = ColdRows::Open({.folder = folder_ / "file", .memory_bytes = ColdRows::kLeastMemory});
  EXPECT_THAT(cold.status(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(cold.status().message()), HasSubstr("creating a folder in " + (folder_ / "file").string()));
}

}  // namespace
}  // namespace medley::worker
