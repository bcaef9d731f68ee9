// Claims: the largest term leads, whatever the order in which claims are written.
#include "worker/claim/claims.h"

#include <gmock/gmock.h>

#include <fstream>

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
  ASSERT_THAT(claims.Take({1, "10.0.0.1:7070"}), IsOk());
  EXPECT_THAT(Claims(root_).Newest(), IsOkAndHolds(Claim{1, "10.0.0.1:7070"}));
  ASSERT_THAT(claims.Take({12, "10.0.0.2:7070"}), IsOk());
  EXPECT_THAT(claims.Take({2, "10.0.0.3:7070"}), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Claims(root_).Newest(), IsOkAndHolds(Claim{12, "10.0.0.2:7070"}));
}

TEST_F(ClaimsTest, ACoordinatorThatStartsAgainMayHaveAnotherAddress) {
  const Claims claims(root_);
  ASSERT_THAT(claims.Take({3, "10.0.0.1:7070"}), IsOk());
  ASSERT_THAT(claims.Take({3, "10.0.0.9:7070"}), IsOk());
  EXPECT_THAT(claims.Newest(), IsOkAndHolds(Claim{3, "10.0.0.9:7070"}));
}

// A process that was stopped between its look at the claims and its own write.
TEST_F(ClaimsTest, ALateWriteOfAnOlderTermDoesNotHideTheNewestClaim) {
  const Claims claims(root_);
  ASSERT_THAT(claims.Take({3, "10.0.0.3:7070"}), IsOk());
  ASSERT_THAT(base::WriteFileAtomic(root_ / "coordinators" / "00000002", "2 10.0.0.2:7070\n"), IsOk());
  ASSERT_THAT(base::WriteFileAtomic(root_ / "coordinators" / "newest", "2 10.0.0.2:7070\n"), IsOk());
  EXPECT_THAT(claims.Newest(), IsOkAndHolds(Claim{3, "10.0.0.3:7070"}));
}

// The attribute cache of a shared file system: the new name is not listed yet.
TEST_F(ClaimsTest, TheNewestClaimIsSeenBeforeItsNameIsListed) {
  const Claims claims(root_);
  ASSERT_THAT(claims.Take({1, "10.0.0.1:7070"}), IsOk());
  ASSERT_THAT(claims.Take({2, "10.0.0.2:7070"}), IsOk());
  fs::remove(root_ / "coordinators" / "00000002");
  EXPECT_THAT(claims.Newest(), IsOkAndHolds(Claim{2, "10.0.0.2:7070"}));
}

TEST_F(ClaimsTest, AnUnreadableClaimIsAnError) {
  const Claims claims(root_);
  ASSERT_THAT(claims.Take({1, "10.0.0.1:7070"}), IsOk());
  std::ofstream(root_ / "coordinators" / "00000002") << "rubbish";
  EXPECT_THAT(claims.Newest(), StatusIs(absl::StatusCode::kDataLoss, testing::HasSubstr("00000002")));
}

}  // namespace
}  // namespace medley::worker
