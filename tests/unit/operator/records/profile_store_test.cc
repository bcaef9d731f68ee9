#include "operator/records/profile_store.h"
#include "common/model/profile.h"

#include "common/base/testing/status_matchers.h"

namespace medley::ops {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;

constexpr char kProfile[] =
    R"({"id": "p", "model": {"layers": [{"name": "fc", "kind": "OTHER", "profiles": [{"resourceType": "cpu", "computeSeconds": 1}]}]}})";

TEST(ProfileStoreTest, TheLastProfileLineCounts) {
  EXPECT_THAT(ProfileJsonInLog("x\nMEDLEY-PROFILE {1}\nMEDLEY-PROFILE {2}\ntail\n"), IsOkAndHolds(std::string("{2}")));
  EXPECT_THAT(ProfileJsonInLog("MEDLEY-PROFILE {1}"), IsOkAndHolds(std::string("{1}")));
  EXPECT_THAT(ProfileJsonInLog("no MEDLEY-PROFILE {1}\n"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ProfileJsonInLog(""), StatusIs(absl::StatusCode::kNotFound));
}

TEST(ProfileStoreTest, AProfileMustHoldNumbersOfItsPool) {
  EXPECT_TRUE(ParseProfile(kProfile, "cpu").ok());
  EXPECT_THAT(ParseProfile(kProfile, "gpu"), StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("'fc'")));
  EXPECT_THAT(ParseProfile("{}", "cpu"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseProfile("{", "cpu"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ProfileStoreTest, LastLine) {
  EXPECT_EQ(LastLine("a\nb\n\n"), "b");
  EXPECT_EQ(LastLine(""), "");
  EXPECT_EQ(LastLine(std::string(900, 'x')).size(), 500u);
}

}  // namespace
}  // namespace medley::ops
