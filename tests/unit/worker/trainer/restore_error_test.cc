#include "worker/trainer/restore_error.h"

#include <gmock/gmock.h>

#include "common/base/status.h"
#include "worker/trainer/background_writer.h"

namespace medley::worker {
namespace {

TEST(RestoreErrorTest, ReadingACheckpointMarksItsErrorsAndTellsDamageApart) {
  const auto read = [](const absl::Status& status) {
    return base::Annotate(ReadBounded("reading", {}, [status] { return status; }), "step-00000009-e3");
  };
  EXPECT_FALSE(IsRestoreError(read(absl::OkStatus())));
  EXPECT_FALSE(IsRestoreError(base::DataLoss("of something else")));
  for (const absl::Status& damage : {base::DataLoss("cut off"), base::NotFound("no manifest"),
                                     base::InvalidArgument("a table that the model does not have")}) {
    EXPECT_TRUE(IsRestoreError(read(damage))) << damage;
    EXPECT_TRUE(IsDamage(read(damage))) << damage;
  }
  for (const absl::Status& passes : {base::Internal("i/o error"), base::Unavailable("no answer"),
                                     base::ErrnoStatus(EACCES, "rows"), base::DeadlineExceeded("30 min")}) {
    EXPECT_TRUE(IsRestoreError(read(passes))) << passes;
    EXPECT_FALSE(IsDamage(read(passes))) << passes;
  }
}

}  // namespace
}  // namespace medley::worker
