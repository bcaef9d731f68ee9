// Where a member looks for its coordinator, and which one it obeys.
#include "worker/trainer/coordinator_address.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <memory>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace {

class CoordinatorAddressTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *base::MakeTempDir("medley-address");
    ASSERT_THAT(Claims(root_).Take(1, "old:1", "a"), base::IsOk());
    book_ = std::make_unique<CoordinatorAddress>("old:1", root_);
    ASSERT_TRUE(book_->Welcome(1));
  }
  void TearDown() override {
    book_.reset();
    base::RemoveTempDir(root_);
  }
  std::filesystem::path root_;
  std::unique_ptr<CoordinatorAddress> book_;
};

// The successor may never claim the job.
TEST_F(CoordinatorAddressTest, ARedirectBindsTheMemberToNobody) {
  book_->Hint({2, "new:1"});
  EXPECT_EQ(book_->current(), (Claim{1, "new:1"}));
  EXPECT_FALSE(book_->LookAtClaims({})) << "the successor is tried first";
  EXPECT_EQ(book_->current().address, "new:1");
  book_->DropHint();
  EXPECT_TRUE(book_->LookAtClaims({}));
  EXPECT_EQ(book_->current().address, "old:1");
  EXPECT_TRUE(book_->Welcome(1)) << "the former one leads on";
}

TEST_F(CoordinatorAddressTest, TheSuccessorBindsTheMemberByItsWelcomeOrItsClaim) {
  for (const bool by_claim : {false, true}) {
    SCOPED_TRACE(by_claim);
    const int64_t term = by_claim ? 3 : 2;
    book_->Hint({term, "new:1"});
    if (by_claim) {
      ASSERT_THAT(Claims(root_).Take(term, "newer:1", "b"), base::IsOk());
      EXPECT_TRUE(book_->LookAtClaims({})) << "it was started again elsewhere";
    } else {
      EXPECT_TRUE(book_->Welcome(term));
    }
    EXPECT_FALSE(book_->hinted());
    EXPECT_EQ(book_->current().term, term);
    EXPECT_FALSE(book_->Welcome(1));
  }
}

}  // namespace
}  // namespace medley::worker
