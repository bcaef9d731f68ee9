#include "common/base/denormals.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <thread>

namespace medley::base {
namespace {

// Computed when it runs.
float Product(float a, float b) {
  volatile float x = a, y = b;
  return x * y;
}

TEST(DenormalsTest, AreZeroInTheThreadThatAsksAndInThoseThatItStarts) {
#if !defined(__x86_64__) && !defined(__aarch64__)
  std::printf("NOT TESTED: on this processor FlushDenormals has no effect\n");
#else
  EXPECT_GT(Product(1e-20F, 1e-20F), 0);
  EXPECT_GT(Product(1e-40F, 1e20F), 0);
  float result = -1, operand = -1, normal = -1;
  std::thread([&] {
    FlushDenormals();
    std::thread([&] {
      result = Product(1e-20F, 1e-20F);
      operand = Product(1e-40F, 1e20F);
      normal = Product(2e-38F, 1);
    }).join();
  }).join();
  EXPECT_EQ(result, 0);
  EXPECT_EQ(operand, 0);
  EXPECT_EQ(normal, 2e-38F);
  EXPECT_GT(Product(1e-20F, 1e-20F), 0);  // other threads are as they were
#endif
}

}  // namespace
}  // namespace medley::base
