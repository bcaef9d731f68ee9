// EXPECT_THAT(status_or, IsOk()), EXPECT_THAT(s, StatusIs(absl::StatusCode::kNotFound, HasSubstr("pool"))).
#pragma once

#include <gmock/gmock.h>

#include "common/base/status.h"

namespace medley::base {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << ToString(StatusOf(arg));
  return StatusOf(arg).ok();
}
MATCHER_P(StatusIs, code, std::string("has code ") + std::string(absl::StatusCodeToString(code))) {
  *result_listener << ToString(StatusOf(arg));
  return StatusOf(arg).code() == code;
}
MATCHER_P2(StatusIs, code, message, "has a code and a message") {
  *result_listener << ToString(StatusOf(arg));
  return StatusOf(arg).code() == code && testing::ExplainMatchResult(message, Message(StatusOf(arg)), result_listener);
}
MATCHER_P(IsOkAndHolds, value, "is OK and holds a value") {
  *result_listener << ToString(arg.status());
  return arg.ok() && testing::ExplainMatchResult(value, *arg, result_listener);
}

}  // namespace medley::base
