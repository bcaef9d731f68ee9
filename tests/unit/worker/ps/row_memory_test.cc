// Counts the memory that steps allocate: it must depend on the rows that a step touches, not on the size of the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

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
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

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
  std::vector<float> rows;
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

// No step pays for the growth of the whole table: at most a few blocks and lists of pointers to blocks.
TEST(RowMemoryTest, NoStepCopiesTheTableWhenItGrows) {
  RowStore store = MemoryStore();
  const uint64_t rows = uint64_t{1} << 19;  // 32 MiB of values
  size_t most = 0;
  for (uint64_t first = 0; first < rows; first += kRowsPerStep) most = std::max(most, Step(store, first));
  EXPECT_LT(most, size_t{512} << 10);
}

}  // namespace
}  // namespace medley::worker
