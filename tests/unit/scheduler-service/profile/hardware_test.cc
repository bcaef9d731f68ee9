// The built-in datasheets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/profile/hardware.h"

namespace medley::sched {
namespace {

using base::IsOk;
using testing::HasSubstr;

TEST(HardwareCatalogTest, BuiltinHasTheMachinesAndEveryFigureItsSource) {
  const auto catalog = HardwareCatalog::Builtin();
  ASSERT_THAT(catalog, IsOk());
  for (const char* name :
       {"cpu", "cpu-emerald-rapids", "t4", "v100", "a10", "l4", "a100-40", "a100-80", "h100", "mi300x"}) {
    EXPECT_NE(catalog->Find(name), nullptr) << name;
  }
  EXPECT_EQ(catalog->Find("tpu"), nullptr);
  const Hardware& v100 = *catalog->Find("v100");
  EXPECT_EQ(v100.cls, model::ResourceClass::kGpu);
  EXPECT_EQ(v100.flops.at("fp32"), 15.7e12);
  EXPECT_EQ(v100.memory_bytes_per_second, 900e9);
  EXPECT_THAT(catalog->Names(), HasSubstr("cpu, cpu-16, cpu-emerald-rapids, t4, v100"));
}

TEST(HardwareCatalogTest, AFileTakesItsPlace) {
  const auto bad = HardwareCatalog::Parse("hardware: [{name: a, class: CPU}]");
  EXPECT_THAT(base::Message(bad.status()), HasSubstr("hardware[0].flops.fp32: must be given"));
}

}  // namespace
}  // namespace medley::sched
