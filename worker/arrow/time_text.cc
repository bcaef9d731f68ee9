#include "worker/arrow/time_text.h"

#include <arrow/type.h>

#include <chrono>
#include <cstdio>

namespace medley::worker {
namespace {

constexpr int64_t kSecondsOfDay = 86400;
constexpr int64_t kFirstDay = -719528, kLastDay = 2932896;  // 0000-01-01 and 9999-12-31

int64_t FloorDivide(int64_t value, int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

}  // namespace

int64_t UnitsOfSecond(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return 1;
    case arrow::TimeUnit::MILLI:
      return 1000;
    case arrow::TimeUnit::MICRO:
      return 1'000'000;
    case arrow::TimeUnit::NANO:
      break;
  }
  return 1'000'000'000;
}

std::string DateText(int64_t days) {
  if (days < kFirstDay || days > kLastDay) return std::to_string(days);
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  char text[32];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()));
  return text;
}

std::string TimeText(int64_t value, int64_t units_of_second) {
  const int64_t seconds = FloorDivide(value, units_of_second), part = value - seconds * units_of_second;
  if (seconds < 0 || seconds >= kSecondsOfDay) return std::to_string(value);
  char text[64];
  int length = std::snprintf(text, sizeof text, "%02d:%02d:%02d", static_cast<int>(seconds / 3600),
                             static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60));
  if (part > 0) {
    const int decimals = units_of_second == 1000 ? 3 : units_of_second == 1'000'000 ? 6 : 9;
    std::snprintf(text + length, sizeof text - static_cast<size_t>(length), ".%0*lld", decimals,
                  static_cast<long long>(part));
  }
  return text;
}

std::string TimestampText(int64_t value, int64_t units_of_second, bool utc) {
  const int64_t units_of_day = kSecondsOfDay * units_of_second;
  const int64_t days = FloorDivide(value, units_of_day);
  if (days < kFirstDay || days > kLastDay) return std::to_string(value);
  const int64_t rest = value - days * units_of_day;
  if (rest == 0 && !utc) return DateText(days);
  return DateText(days) + " " + TimeText(rest, units_of_second) + (utc ? "Z" : "");
}

}  // namespace medley::worker
