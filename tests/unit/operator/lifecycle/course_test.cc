#include "operator/lifecycle/course.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace medley::ops::lifecycle {
namespace {

TEST(CourseTest, StaysBoundedAndCoversTheWholeJob) {
  for (const int64_t stride : {1, 7, 1000}) {
    std::vector<CoursePoint> course;
    for (int64_t step = stride; step <= 10'000 * stride; step += stride) {
      AddToCourse({step, 1.0 / static_cast<double>(step), 100}, course);
      ASSERT_LE(course.size(), kCoursePoints);
    }
    ASSERT_GE(course.size(), kCoursePoints / 3);
    EXPECT_EQ(course.front().step, stride);
    const int64_t end = 10'000 * stride;
    EXPECT_GT(course.back().step, end - end / 15);
    for (size_t i = 1; i < course.size(); ++i) {
      EXPECT_GT(course[i].step, course[i - 1].step);
      EXPECT_LT(course[i].step - course[i - 1].step, end / 10);
    }
  }
}

TEST(CourseTest, AShortJobKeepsEveryPoint) {
  std::vector<CoursePoint> course;
  for (int64_t step = 1; step <= 20; ++step) AddToCourse({step, 0.5, 100}, course);
  EXPECT_EQ(course.size(), 20u);
  AddToCourse({20, 0.4, 100}, course);
  EXPECT_EQ(course.size(), 20u) << "the same step again";
}

TEST(CourseTest, WhatIsTrainedAgainReplacesWhatWasLost) {
  std::vector<CoursePoint> course;
  for (int64_t step = 10; step <= 50; step += 10) AddToCourse({step, 1, 100}, course);
  AddToCourse({25, 2, 90}, course);
  ASSERT_EQ(course.size(), 3u);
  EXPECT_EQ(course.back(), (CoursePoint{25, 2, 90}));
}

TEST(CourseTest, WhatIsNotMeasuredIsLeftOut) {
  std::vector<CoursePoint> course;
  AddToCourse({0, 1, 100}, course);
  AddToCourse({1, 1, 0}, course);
  AddToCourse({1, std::numeric_limits<double>::quiet_NaN(), 100}, course);
  EXPECT_TRUE(course.empty());
}

}  // namespace
}  // namespace medley::ops::lifecycle
