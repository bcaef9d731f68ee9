#include "worker/device/bounded_device.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "worker/device/testing/host_device.h"

namespace medley::worker::device {
namespace {

// HostDevice says 1 of 2 GiB are free.
TEST(BoundedDeviceTest, MemoryIsThatOfTheUnit) {
  constexpr int64_t kMib = int64_t{1} << 20;
  const auto host = std::make_shared<HostDevice>(3);
  const auto of = [&](int64_t mib) { return *BoundedDevice(host, mib * kMib).Memory(); };
  EXPECT_EQ(of(1536).free, 512 * kMib) << "1 GiB is in use";
  EXPECT_EQ(of(1536).total, 1536 * kMib);
  EXPECT_EQ(of(512).free, 0);
  EXPECT_EQ(of(4096).free, 1024 * kMib) << "no more than there is";
  EXPECT_EQ(of(4096).total, 2048 * kMib);
  BoundedDevice bounded(host, kMib);
  EXPECT_EQ(bounded.id(), host->id());
  const std::array<std::byte, 4> from{std::byte{7}};
  std::array<std::byte, 4> to{};
  EXPECT_THAT(bounded.CopyIn(from, to.data()), base::IsOk());
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace medley::worker::device
