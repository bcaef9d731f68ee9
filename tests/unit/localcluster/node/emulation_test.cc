#include "localcluster/node/emulation.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::localcluster {
namespace {

kube::Object PodWith(const std::map<std::string, std::string>& annotations) {
  kube::Object pod(kube::resources::Pods(), {"default", "p"});
  for (const auto& [name, value] : annotations) pod.SetAnnotation(name, value);
  return pod;
}

TEST(EmulationTest, APodWithoutAnnotationsAsksForNothing) {
  EXPECT_THAT(EmulationOf(PodWith({{"example.com/cpu", "1"}})), base::IsOkAndHolds(Emulation{}));
}

TEST(EmulationTest, ReadsCoresDelaysAndBitsPerSecond) {
  const auto emulation = EmulationOf(PodWith({{kCpuAnnotation, "250m"},
                                              {kLinkDelayAnnotation, "1.5ms"},
                                              {kLinkDelaySpreadAnnotation, "0.25"},
                                              {kEgressAnnotation, "80M"},
                                              {kIngressAnnotation, "1G"}}));
  ASSERT_THAT(emulation, base::IsOk());
  EXPECT_DOUBLE_EQ(emulation->cores.value_or(0), 0.25);
  EXPECT_EQ(emulation->card.delay, base::nanoseconds(1'500'000));
  EXPECT_EQ(emulation->card.spread, 0.25);
  EXPECT_EQ(emulation->card.sends, 1e7);
  EXPECT_EQ(emulation->card.receives, 1.25e8);
}

TEST(EmulationTest, NamesTheAnnotationThatItCannotRead) {
  const std::map<const char*, std::vector<const char*>> wrong = {
      {kCpuAnnotation, {"fast", "0", "-1", "1e400"}},
      {kLinkDelayAnnotation, {"5", "-5ms", "11s", "soon"}},
      {kLinkDelaySpreadAnnotation, {"1.1", "-0.1", "nan", "wide"}},
      {kEgressAnnotation, {"0", "1Gbit"}},
      {kIngressAnnotation, {"-1M", "inf"}},
  };
  for (const auto& [name, values] : wrong) {
    for (const char* value : values) {
      EXPECT_THAT(EmulationOf(PodWith({{name, value}})),
                  base::StatusIs(absl::StatusCode::kInvalidArgument,
                                 testing::AllOf(testing::HasSubstr(name), testing::HasSubstr(value))));
    }
  }
}

}  // namespace
}  // namespace medley::localcluster
