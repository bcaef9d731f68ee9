// Claims: the largest term leads, whatever the order in which claims are written.
#include "worker/claim/claims.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::IsOkAndHolds;
using base::StatusIs;

class ClaimsTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-claims"); }
  void TearDown() override { base::RemoveTempDir(root_); }
  fs::path root_;
};

TEST_F(ClaimsTest, WithoutClaimsNobodyLeads) { EXPECT_THAT(Claims(root_).Newest(), IsOkAndHolds(Claim())); }

TEST_F(ClaimsTest, TheLargestTermLeadsForEveryReader) {
  const Claims claims(root_);
  ASSERT_THAT(claims.Take(1, "10.0.0.1:7070", "a"), IsOkAndHolds(Claim{1, "10.0.0.1:7070", 1, "a"}));
  EXPECT_THAT(Claims(root_).Newest(), IsOkAndHolds(Claim{1, "10.0.0.1:7070", 1, "a"}));
  ASSERT_THAT(claims.Take(12, "10.0.0.2:7070", "b"), IsOk());
  EXPECT_THAT(claims.Take(2, "10.0.0.3:7070", "c"), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Claims(root_).Newest(), IsOkAndHolds(Claim{12, "10.0.0.2:7070", 1, "b"}));
}

// A container that is started again, or a second pod with the same term.
TEST_F(ClaimsTest, ALaterProcessOfATermTakesItFromTheFormerOne) {
  const Claims claims(root_);
  const absl::StatusOr<Claim> former = claims.Take(3, "10.0.0.1:7070", "z");
  ASSERT_THAT(former, IsOk());
  EXPECT_THAT(claims.Check(*former), IsOk());
  const absl::StatusOr<Claim> later = claims.Take(3, "10.0.0.9:7070", "a");
  EXPECT_THAT(later, IsOkAndHolds(Claim{3, "10.0.0.9:7070", 2, "a"}));
  EXPECT_THAT(claims.Newest(), IsOkAndHolds(*later));
  EXPECT_THAT(claims.Check(*later), IsOk());
  EXPECT_THAT(claims.Check(*former), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(ClaimsTest, OneOfTwoThatClaimATermAtOnceLeads) {
  const Claims claims(root_);
  const absl::StatusOr<Claim> one = claims.Take(3, "10.0.0.1:7070", "b");
  ASSERT_THAT(one, IsOk());
  for (const auto& [instance, leads] : std::map<std::string, bool>{{"a", false}, {"c", true}}) {
    SCOPED_TRACE(instance);
    const Claim other{3, "10.0.0.2:7070", 1, instance};  // it has not seen the first one
    ASSERT_THAT(base::WriteFileAtomic(root_ / "coordinators" / ClaimName(other), ClaimName(other) + " 10.0.0.2:7070\n"),
                IsOk());
    EXPECT_EQ(claims.Check(other).ok(), leads);
    EXPECT_EQ(claims.Check(*one).ok(), !leads);
  }
}

TEST_F(ClaimsTest, APodThatIsStartedAgainAndAgainLeavesOneClaim) {
  for (int run = 1; run <= 3; ++run) ASSERT_THAT(Claims(root_).Take(1, "10.0.0.1:7070", "a"), IsOk());
  EXPECT_EQ(Claims(root_).Newest()->run, 3);
  const auto files = fs::directory_iterator(root_ / "coordinators");
  EXPECT_EQ(std::distance(files, fs::directory_iterator()), 2) << "the claim, and `newest`";
}

// A process that was stopped between its look at the claims and its own write.
TEST_F(ClaimsTest, ALateWriteOfAnOlderTermDoesNotHideTheNewestClaim) {
  const Claims claims(root_);
  const absl::StatusOr<Claim> newest = claims.Take(3, "10.0.0.3:7070", "a");
  ASSERT_THAT(newest, IsOk());
  const std::string late = "00000002-00000001-b";
  ASSERT_THAT(base::WriteFileAtomic(root_ / "coordinators" / late, late + " 10.0.0.2:7070\n"), IsOk());
  ASSERT_THAT(base::WriteFileAtomic(root_ / "coordinators" / "newest", late + " 10.0.0.2:7070\n"), IsOk());
  EXPECT_THAT(claims.Newest(), IsOkAndHolds(*newest));
}

// The attribute cache of a shared file system: the new name is not listed yet.
TEST_F(ClaimsTest, TheNewestClaimIsSeenBeforeItsNameIsListed) {
  const Claims claims(root_);
  ASSERT_THAT(claims.Take(1, "10.0.0.1:7070", "a"), IsOk());
  const absl::StatusOr<Claim> newest = claims.Take(2, "10.0.0.2:7070", "b");
  ASSERT_THAT(newest, IsOk());
  fs::remove(root_ / "coordinators" / ClaimName(*newest));
  EXPECT_THAT(claims.Newest(), IsOkAndHolds(*newest));
}

TEST_F(ClaimsTest, TheLeaderShowsTheNewestClaimAgainAfterALateWrite) {
  const Claims claims(root_);
  const absl::StatusOr<Claim> leader = claims.Take(3, "10.0.0.3:7070", "a");
  ASSERT_THAT(leader, IsOk());
  const Claim late{2, "10.0.0.2:7070", 1, "b"};
  ASSERT_THAT(base::WriteFileAtomic(root_ / "coordinators" / "newest", ClaimName(late) + " 10.0.0.2:7070\n"), IsOk());
  EXPECT_THAT(claims.Renew(*leader), IsOkAndHolds(*leader));
  fs::remove(root_ / "coordinators" / ClaimName(*leader));  // readers that do not see its name yet
  EXPECT_THAT(claims.Newest(), IsOkAndHolds(*leader));
}

TEST_F(ClaimsTest, AnUnreadableClaimIsAnError) {
  const Claims claims(root_);
  ASSERT_THAT(claims.Take(1, "10.0.0.1:7070", "a"), IsOk());
  std::ofstream(root_ / "coordinators" / "00000002-00000001-b") << "rubbish";
  EXPECT_THAT(claims.Newest(), StatusIs(absl::StatusCode::kDataLoss, testing::HasSubstr("00000002")));
}

}  // namespace
}  // namespace medley::worker
