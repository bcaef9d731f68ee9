// Counts the memory that steps allocate: it must depend on the rows that a step touches, not on the size of the table.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <numeric>

#include "common/base/testing/status_matchers.h"
#include "worker/ps/row_store.h"

namespace {

std::atomic<size_t> allocated = 0;  // bytes, by the whole program

void* Allocate(size_t bytes) {
  allocated += bytes;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes, std::align_val_t alignment) {
  allocated += bytes;
  if (void* memory = std::aligned_alloc(static_cast<size_t>(alignment), bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }

namespace medley::worker {
namespace {

constexpr int kMemoryTable = 3;
constexpr size_t kMemoryColumns = 8;
constexpr uint64_t kRowsPerStep = 64;

// One step: pulls and updates rows [first, first + kRowsPerStep). Returns the bytes that it allocated.
size_t Step(RowStore& store, uint64_t first) {
  std::vector<uint64_t> keys;
  for (uint64_t key = first; key < first + kRowsPerStep; ++key) keys.push_back(key);
  const std::vector<float> gradients(keys.size() * kMemoryColumns, 0.5f);
  const GradientView view{kMemoryTable, keys, gradients};
  const size_t before = allocated;
  std::vector<float> rows(keys.size() * kMemoryColumns);
  EXPECT_THAT(store.Read(kMemoryTable, keys, rows), base::IsOk());
  EXPECT_THAT(store.Apply(store.AppliedStep() + 1, std::span(&view, 1), 1), base::IsOk());
  return allocated - before;
}

RowStore MemoryStore() {
  return RowStore(
      {{.operation = kMemoryTable, .name = "table", .rows = 1 << 30, .columns = kMemoryColumns, .sparse = true}},
      Optimizer{.kind = OptimizerKind::kAdagrad}, 7);
}

TEST(RowMemoryTest, AStepOnALargeTableAllocatesWhatItAllocatesOnASmallOne) {
  std::vector<size_t> bytes;
  for (const uint64_t rows : {uint64_t{1} << 10, uint64_t{1} << 19}) {
    RowStore store = MemoryStore();
    for (uint64_t first = 0; first < rows; first += kRowsPerStep) Step(store, first);
    ASSERT_EQ(store.Rows(), static_cast<int64_t>(rows));
    bytes.push_back(Step(store, rows / 2));
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

// Bytes of this process that are in memory.
int64_t Resident() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// No step pays for the growth of the whole table: at most a few segments and pages, and lists of pointers to them.
TEST(RowMemoryTest, NoStepCopiesTheTableWhenItGrows) {
  RowStore store = MemoryStore();
  const uint64_t rows = uint64_t{1} << 19;  // 32 MiB of values
  size_t most = 0;
  int64_t touched = 0;
  for (uint64_t first = 0; first < rows; first += kRowsPerStep) {
    const int64_t before = Resident();
    most = std::max(most, Step(store, first));
    touched = std::max(touched, Resident() - before);
  }
  EXPECT_LT(most, size_t{512} << 10);
  EXPECT_LT(touched, int64_t{5} << 20) << "rows lie in memory of the system, in pages of 2 MiB at most";
}

TEST(RowMemoryTest, ARowOfAdamWithSixteenFloatsTakesAtMost220Bytes) {
  constexpr uint64_t kRows = uint64_t{1} << 18;
  RowStore store({{.operation = kMemoryTable, .name = "table", .rows = kRows, .columns = 16, .sparse = true}},
                 MakeOptimizer("adam", 0.1).value(), 7);
  const std::vector<float> gradients(kRowsPerStep * 16, 0.5f);
  const int64_t before = Resident();
  for (uint64_t first = 0; first < kRows; first += kRowsPerStep) {
    std::vector<uint64_t> keys(kRowsPerStep);
    std::iota(keys.begin(), keys.end(), first);
    const GradientView view{kMemoryTable, keys, gradients};
    ASSERT_THAT(store.Apply(store.AppliedStep() + 1, {&view, 1}, 1), base::IsOk());
  }
  EXPECT_LE(Resident() - before, static_cast<int64_t>(220 * kRows) + (int64_t{4} << 20)) << "two pages more";
}

// Undoes base::Mix64, so that a caller can choose hashes.
uint64_t KeyOf(uint64_t hash) {
  const auto inverse = [](uint64_t odd) {  // modulo 2^64, by Newton's iteration
    uint64_t x = odd;
    for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
    return x;
  };
  const auto unshift = [](uint64_t x, int by) {
    uint64_t y = x;
    for (int i = 0; i < 64 / by; ++i) y = x ^ (y >> by);
    return y;
  };
  uint64_t x = unshift(hash, 31) * inverse(0x94d049bb133111ebULL);
  x = unshift(x, 27) * inverse(0xbf58476d1ce4e5b9ULL);
  return unshift(x, 30) - 0x9e3779b97f4a7c15ULL;
}

struct KeysByRow {
  const std::vector<uint64_t>& keys;
  uint64_t operator()(uint32_t row) const { return keys[row]; }
  void Prefetch(uint32_t) const {}
};

// Whoever chooses the keys of the data can choose hashes. A directory that grew until they differ would not fit.
TEST(RowMemoryTest, KeysThatCollideTakeNoMoreMemoryThanOthers) {
  for (const int shift : {0, 44}) {  // the hashes differ in their lowest bits only, or in their highest
    std::vector<uint64_t> keys;
    RowIndex index;
    const size_t before = allocated;
    size_t own = 0;
    for (uint64_t i = 0; i < 20000; ++i) {
      const size_t start = allocated;
      keys.push_back(KeyOf(i << shift));
      ASSERT_EQ(RowIndex::Hash(keys.back()), i << shift);
      own += allocated - start;
      ASSERT_EQ(index.Find(keys.back(), i << shift, KeysByRow{keys}), RowIndex::kNone);
      index.Add(i << shift, static_cast<uint32_t>(i), KeysByRow{keys});
    }
    EXPECT_LT(allocated - before - own, size_t{20000} * 64) << "all that was ever allocated";
    for (uint32_t i = 0; i < 20000; ++i) ASSERT_EQ(index.Find(keys[i], uint64_t{i} << shift, KeysByRow{keys}), i);
  }
}

}  // namespace
}  // namespace medley::worker
