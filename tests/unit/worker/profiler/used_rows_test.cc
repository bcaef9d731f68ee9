#include "worker/profiler/used_rows.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

Batch RandomIds(int samples, int fields, uint64_t rows, uint64_t seed) {
  base::Rng rng(seed);
  Batch batch{.shape = {.fields = fields}, .samples = samples};
  for (int i = 0; i < samples * fields; ++i) batch.ids.push_back(static_cast<int32_t>(rng.Below(rows)));
  return batch;
}

int64_t Distinct(const Batch& batch, const ParameterSpec& table) {
  std::set<int32_t> ids;
  for (int sample = 0; sample < batch.samples; ++sample) {
    for (int field = 0; field < table.fields; ++field) {
      ids.insert(batch.ids[static_cast<size_t>(sample * batch.shape.fields + table.first_field + field)]);
    }
  }
  return std::ssize(ids);
}

TEST(UsedRowsTest, CountsTheRowsOfTheTablesFields) {
  const Batch batch = RandomIds(500, 5, 1000, 1);
  for (const auto& [first, fields] : {std::pair(0, 5), std::pair(1, 2), std::pair(4, 1)}) {
    const ParameterSpec table{.rows = 1000, .columns = 8, .sparse = true, .first_field = first, .fields = fields};
    EXPECT_EQ(CountUsedRows(batch, table), Distinct(batch, table)) << first;
  }
  EXPECT_EQ(CountUsedRows(Batch(), {.rows = 10, .fields = 0}), 0);
}

TEST(UsedRowsTest, LargeTablesAreCountedWithinAFewPercent) {
  for (const uint64_t rows : {uint64_t{20'000'000}, uint64_t{2'000'000'000}}) {
    const ParameterSpec table{.rows = static_cast<int64_t>(rows), .columns = 8, .sparse = true, .fields = 2};
    const Batch few = RandomIds(3, 2, rows, rows);
    EXPECT_EQ(CountUsedRows(few, table), Distinct(few, table));
    const Batch many = RandomIds(100'000, 2, rows, rows + 1);
    const auto exact = static_cast<double>(Distinct(many, table));
    EXPECT_NEAR(static_cast<double>(CountUsedRows(many, table)), exact, 0.02 * exact) << rows;
  }
  // Ids that follow one another.
  Batch next{.shape = {.fields = 1}, .samples = 300'000};
  for (int i = 0; i < next.samples; ++i) next.ids.push_back(1'000'000'000 + i);
  EXPECT_NEAR(static_cast<double>(CountUsedRows(next, {.rows = 2'000'000'000, .fields = 1})), 3e5, 6e3);
}

}  // namespace
}  // namespace medley::worker
