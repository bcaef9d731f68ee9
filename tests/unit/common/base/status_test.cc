#include "common/base/status.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "common/base/details.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"

namespace medley::base {
namespace {

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return InvalidArgument("halving {}: it is odd", n);
  return n / 2;
}
absl::StatusOr<int> Quarter(int n) {
  MEDLEY_ASSIGN_OR_RETURN(const int half, Half(n));
  return Half(half);
}

TEST(StatusTest, MacrosPassErrorsOn) {
  EXPECT_THAT(Quarter(8), IsOkAndHolds(2));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "halving 3: it is odd"));
}

TEST(StatusTest, AnnotateKeepsTheCode) {
  const absl::Status status = Annotate(ErrnoStatus(ENOENT, "opening x"), "loading the catalog");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("loading the catalog: opening x: ")));
  EXPECT_THAT(Annotate(absl::OkStatus(), "nothing"), IsOk());
}

TEST(StatusTest, DetailsStayWithAnAnnotatedError) {
  const absl::Status status = Annotate(WithDetails(Aborted("taken"), "holder=b"), "taking x");
  EXPECT_EQ(Details(status), "holder=b");
  EXPECT_EQ(Details(Aborted("taken")), "");
  EXPECT_THAT(WithDetails(absl::OkStatus(), "nothing"), IsOk());
  EXPECT_EQ(Details(absl::OkStatus()), "");
}

TEST(RngTest, IsReproducibleAndUniform) {
  Rng a(42), b(42);
  int counts[7] = {};
  for (int i = 0; i < 70000; ++i) {
    const uint64_t x = a.Below(7);
    ASSERT_EQ(x, b.Below(7));
    ++counts[x];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
}

}  // namespace
}  // namespace medley::base
