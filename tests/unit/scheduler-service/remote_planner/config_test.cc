// The file of --planners: what it may say, and the sentence for each mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/remote_planner/config.h"
#include "scheduler-service/remote_planner/remote_planner.h"

namespace medley::sched {
namespace {

std::string ErrorOf(std::string_view text, bool insecure = false) {
  return base::Message(ParseRemotePlanners(text, {"auto", "exact"}, insecure).status());
}

TEST(RemotePlannersConfigTest, ReadsAllFields) {
  const auto planners = ParseRemotePlanners(R"(
planners:
- name: mine
  address: planner.example:7072
  planner: genetic
  description: tries hard
  timeoutSeconds: 2.5
  tls: {ca: ca.pem, serverName: planner}
  tokenFile: token
- {name: local-2, address: "unix:/run/planner"}
- {name: local-6, address: "[::1]:7072"}
)",
                                            {"auto"}, false);
  ASSERT_THAT(planners, base::IsOk());
  ASSERT_EQ(planners->size(), 3u);
  const RemotePlannerConfig& first = (*planners)[0];
  EXPECT_EQ(first.name, "mine");
  EXPECT_EQ(first.address, "planner.example:7072");
  EXPECT_EQ(first.planner, "genetic");
  EXPECT_EQ(first.description, "tries hard");
  EXPECT_EQ(first.timeout_seconds, 2.5);
  ASSERT_TRUE(first.tls);
  EXPECT_EQ(first.tls->ca, "ca.pem");
  EXPECT_EQ(first.tls->server_name, "planner");
  EXPECT_EQ(first.token_file, "token");
  EXPECT_EQ((*planners)[1].planner, "local-2");
  EXPECT_EQ((*planners)[1].description, "a planner at unix:/run/planner");
  EXPECT_FALSE((*planners)[1].tls);
}

TEST(RemotePlannersConfigTest, RefusesMistakesBySentences) {
  EXPECT_EQ(ErrorOf("planners: [{name: exact, address: 'unix:/x'}]"),
            "planners[0].name: 'exact' is the name of another planner");
  EXPECT_EQ(ErrorOf("planners: [{name: a, address: 'unix:/x'}, {name: a, address: 'unix:/y'}]"),
            "planners[1].name: 'a' is the name of another planner");
  for (const char* bad : {"Mine", "-a", "a-", "a b", "a/b", "\xC3\xA4"}) {
    EXPECT_THAT(ErrorOf(fmt::format("planners: [{{name: '{}', address: 'unix:/x'}}]", bad)),
                testing::HasSubstr("planners[0].name: must have at most 63 lower-case letters"))
        << bad;
  }
  EXPECT_THAT(ErrorOf("planners: [{name: a, address: 'unix:/x', adress: b}]"),
              testing::HasSubstr("planners[0].adress: unknown field"));
  EXPECT_THAT(ErrorOf("planers: []"), testing::HasSubstr("planners"));
  EXPECT_THAT(ErrorOf("planners: [{address: 'unix:/x'}]"), testing::HasSubstr("planners[0].name"));
  EXPECT_THAT(ErrorOf("planners: [{name: a}]"), testing::HasSubstr("planners[0].address"));
  EXPECT_THAT(ErrorOf("planners: [{name: a, address: 'unix:'}]"), testing::HasSubstr("no path"));
  for (const char* bad : {"nowhere", ":7072", "host:0", "host:70000"}) {
    EXPECT_THAT(ErrorOf(fmt::format("planners: [{{name: a, address: '{}'}}]", bad), true),
                testing::StartsWith("planners[0].address: "))
        << bad;
  }
  for (const char* bad : {"0", "-1", "3601", ".inf", ".nan", "soon"}) {
    EXPECT_THAT(ErrorOf(fmt::format("planners: [{{name: a, address: 'unix:/x', timeoutSeconds: {}}}]", bad)),
                testing::HasSubstr("planners[0].timeoutSeconds: "))
        << bad;
  }
  EXPECT_THAT(ErrorOf("planners: [{name: a, address: 'unix:/x', tls: {cert: x}}]"),
              testing::HasSubstr("planners[0].tls.cert: unknown field"));
  std::string many = "planners:\n";
  for (int i = 0; i < 17; ++i) many += fmt::format("- {{name: p{}, address: 'unix:/x'}}\n", i);
  EXPECT_EQ(ErrorOf(many), "planners: has 17 entries, at most 16 are allowed");
}

TEST(RemotePlannersConfigTest, RefusesPlainTextToOtherMachines) {
  const char text[] = "planners: [{name: a, address: 'planner:7072'}]";
  EXPECT_EQ(ErrorOf(text),
            "planners[0].address: planner is not a loopback address: set tls, or allow plain text with --insecure");
  EXPECT_EQ(ErrorOf(text, true), "");
  EXPECT_EQ(ErrorOf("planners: [{name: a, address: 'planner:7072', tls: {}}]"), "");
}

TEST(RemotePlannersConfigTest, ErrorsNameTheFile) {
  EXPECT_THAT(LoadRemotePlanners("/nowhere/planners.yaml", {}, false),
              base::StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("/nowhere/planners.yaml")));
  const Registry registry = BuiltinPlanners();
  EXPECT_THAT(MakeRemotePlanner({.name = "a", .address = "unix:/x", .tls = RemotePlannerTls{.ca = "/nowhere/ca.pem"}},
                                *registry.Find("auto", Supply::kUnits)),
              base::StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("/nowhere/ca.pem")));
}

}  // namespace
}  // namespace medley::sched
