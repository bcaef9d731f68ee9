// The built-in datasheets and their perturbed copies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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

TEST(PerturbHardwareTest, SameSeedSameMachinesWithinBounds) {
  const auto catalog = HardwareCatalog::Builtin();
  ASSERT_THAT(catalog, IsOk());
  const std::vector<Hardware> a = PerturbHardware(*catalog, 64, 7);
  EXPECT_EQ(a, PerturbHardware(*catalog, 64, 7));
  EXPECT_NE(a, PerturbHardware(*catalog, 64, 8));
  ASSERT_EQ(a.size(), 64u);
  std::set<std::string> names;
  for (size_t i = 0; i < a.size(); ++i) {
    names.insert(a[i].name);
    const Hardware& like = catalog->all()[i % catalog->all().size()];
    const double factor = a[i].flops.at("fp32") / like.flops.at("fp32");
    EXPECT_GE(factor, 0.5);
    EXPECT_LE(factor, 2.0);
    EXPECT_EQ(a[i].cls, like.cls);
  }
  EXPECT_EQ(names.size(), 64u);
  EXPECT_THAT(HardwareCatalog::Of(a), IsOk());
  EXPECT_TRUE(PerturbHardware(*catalog, 0, 7).empty());
}

}  // namespace
}  // namespace medley::sched
