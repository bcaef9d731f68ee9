// The course of a job: its training loss and throughput at some steps, in a list of bounded length. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "operator/api/job_status.h"

namespace medley::ops::lifecycle {

inline constexpr size_t kCoursePoints = 60;  // at most, so that a status stays small

// Appends a point. Points of later steps are dropped first: the job returned to a checkpoint. When the list is
// full, every second point is dropped, so the points stay about equally far apart however long the job is. A point
// without a step or a throughput, or too near to the last one, changes nothing.
void AddToCourse(const CoursePoint& point, std::vector<CoursePoint>& course);

}  // namespace medley::ops::lifecycle
