// Dates and times in fields of a file. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "common/model/data_spec.h"

namespace medley::worker {

struct DateTime {
  bool operator==(const DateTime&) const = default;
  double seconds = 0;  // since 1970 in UTC; of a time alone, since midnight
  int year = 1970;     // this and the rest as they are written, without the time zone
  int month = 1;       // from 1
  int weekday = 0;     // from 0, Monday
  int hour = 0;

  double Part(model::ColumnPart part) const;
};

// Reads 2024-01-31, 2024/1/31, 20240131, 31.1.2024, 31 Jan 2024, Jan 31, 2024, 1/31/2024 and, with `day_first`,
// 31/1/2024, alone or with a time after T or a blank: 13:45, 13:45:30.5, 1:45 pm, then Z or +02:00; and a time alone.
// Nothing for other text and for days that do not exist.
std::optional<DateTime> ParseDate(std::string_view text, bool day_first);

}  // namespace medley::worker
