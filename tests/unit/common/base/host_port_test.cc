#include "common/base/host_port.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::base {
namespace {

using testing::HasSubstr;

TEST(HostPortTest, JoinedAddressesAreSplitIntoTheSame) {
  const std::pair<HostPort, const char*> cases[] = {
      {{"10.0.0.7", 7070}, "10.0.0.7:7070"},
      {{"fd00::7", 7070}, "[fd00::7]:7070"},
      {{"::1", 0}, "[::1]:0"},
      {{"::", 65535}, "[::]:65535"},
      {{"fe80::1%eth0", 80}, "[fe80::1%eth0]:80"},
      {{"::ffff:10.0.0.7", 80}, "[::ffff:10.0.0.7]:80"},
      {{"scheduler.medley-system.svc", 7100}, "scheduler.medley-system.svc:7100"},
      {{"", 7100}, ":7100"},
  };
  for (const auto& [parts, text] : cases) {
    EXPECT_EQ(JoinHostPort(parts.host, parts.port), text);
    EXPECT_THAT(SplitHostPort(text), IsOkAndHolds(parts)) << text;
  }
  EXPECT_EQ(JoinHostPort("[::1]", 80), "[::1]:80") << "brackets are not doubled";
}

TEST(HostPortTest, RefusesInvalidAddresses) {
  for (const char* text : {"", "host", "host:", "host:x", "host:-1", "host:65536", "host:80 ", "[::1]", "[::1]80",
                           "[::1", "[::1]:", "[host]:80", "[]:80", ":", "host:999999999999"}) {
    EXPECT_THAT(SplitHostPort(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
  EXPECT_THAT(SplitHostPort("fd00::7:7070"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs brackets")));
  EXPECT_THAT(SplitHostPort("::1"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs brackets")));
}

TEST(HostPortTest, LoopbackOfBothFamilies) {
  for (const char* host : {"localhost", "127.0.0.1", "127.8.9.1", "::1"}) EXPECT_TRUE(IsLoopback(host)) << host;
  for (const char* host :
       {"", "0.0.0.0", "::", "10.0.0.1", "fd00::1", "localhost.example", "127.0.0.1.example", "127.evil"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace medley::base
