#include "operator/lifecycle/course.h"

#include <cmath>
#include <cstdint>

namespace medley::ops::lifecycle {

void AddToCourse(const CoursePoint& point, std::vector<CoursePoint>& course) {
  if (point.step <= 0 || !(point.throughput > 0) || !std::isfinite(point.loss)) return;
  while (!course.empty() && course.back().step > point.step) course.pop_back();
  if (!course.empty()) {
    const int64_t span = point.step - course.front().step;
    const auto apart = span / static_cast<int64_t>(kCoursePoints);
    if (point.step - course.back().step <= apart) return;
  }
  if (course.size() == kCoursePoints) {
    std::vector<CoursePoint> fewer;
    for (size_t i = 0; i < course.size(); i += 2) fewer.push_back(course[i]);
    course = std::move(fewer);
  }
  course.push_back(point);
}

}  // namespace medley::ops::lifecycle
