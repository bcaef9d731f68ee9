// Dates and times of Arrow as texts that worker/data/date.h reads. Pure.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <string>

namespace medley::worker {

int64_t UnitsOfSecond(arrow::TimeUnit::type unit);

// "2024-01-31" for days since 1970. Days outside of the years 0 to 9999 are written as the number they are.
std::string DateText(int64_t days);
// "2024-01-31 13:45:30.250", with a Z for one that is in UTC; so many decimals as the unit has, none when they are all
// 0.
std::string TimestampText(int64_t value, int64_t units_of_second, bool utc);
// "13:45:30" for the time since midnight.
std::string TimeText(int64_t value, int64_t units_of_second);

}  // namespace medley::worker
