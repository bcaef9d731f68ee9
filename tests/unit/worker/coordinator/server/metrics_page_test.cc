#include "worker/coordinator/server/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/common/http_server/raw_client.h"

namespace medley::worker {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsPageTest, OnlyReplicasThatDifferHaveAFractionAndARatio) {
  job::v1::Observation seen;
  EXPECT_THAT(MetricsText(seen), Not(AnyOf(HasSubstr("agreement"), HasSubstr("synchronisation"))));
  seen.mutable_agreement()->set_fraction(0.25);
  seen.mutable_agreement()->set_ratio(0.5);
  EXPECT_THAT(MetricsText(seen), AllOf(HasSubstr("\nmedley_coordinator_agreement_fraction 0.25\n"),
                                       HasSubstr("\nmedley_coordinator_synchronisation_ratio 0.5\n")));
}

TEST(MetricsPageTest, CountsSlowTrainers) {
  job::v1::Observation seen;
  EXPECT_THAT(MetricsText(seen), HasSubstr("\nmedley_coordinator_left_out_members 0\n"));
  seen.add_left_out()->set_member("job-0-a-1");
  EXPECT_THAT(MetricsText(seen), HasSubstr("\nmedley_coordinator_left_out_members 1\n"));
}

TEST(MetricsPageTest, SaysWhichRowsAreInMemory) {
  job::v1::Observation seen;
  EXPECT_THAT(MetricsText(seen), Not(HasSubstr("embedding")));
  job::v1::RowTiers& tiers = *seen.mutable_row_tiers();
  tiers.set_memory_rows(10);
  tiers.set_disk_rows(30);
  tiers.set_memory_bytes(1000);
  tiers.set_disk_bytes(4000);
  tiers.set_pulled_rows(100);
  tiers.set_loaded_rows(20);
  tiers.set_ahead_rows(15);
  tiers.set_left_rows(18);
  tiers.set_wait_seconds(0.5);
  const std::string text = MetricsText(seen);
  for (const char* line :
       {"_rows{place=\"disk\"} 30", "_rows{place=\"memory\"} 10", "_row_bytes{place=\"disk\"} 4000",
        "_row_bytes{place=\"memory\"} 1000", "_pulled_rows_total{found=\"memory\"} 80",
        "_pulled_rows_total{found=\"ahead\"} 15", "_pulled_rows_total{found=\"disk\"} 5",
        "_moved_rows_total{to=\"memory\"} 20", "_moved_rows_total{to=\"disk\"} 18", "_disk_wait_seconds_total 0.5"}) {
    EXPECT_THAT(text, HasSubstr("\nmedley_coordinator_embedding" + std::string(line) + "\n"));
  }
}

TEST(MetricsPageTest, SaysWhichRowsAreOnGpus) {
  job::v1::Observation seen;
  seen.mutable_device_tables()->set_used_rows(50);
  seen.mutable_device_tables()->set_found_rows(40);
  seen.mutable_device_tables()->set_bytes_in(800);
  seen.mutable_device_tables()->set_bytes_out(700);
  const std::string text = MetricsText(seen);
  for (const char* line : {"_rows_total{found=\"device\"} 40", "_rows_total{found=\"host\"} 10",
                           "_bytes_total{to=\"device\"} 800", "_bytes_total{to=\"host\"} 700"}) {
    EXPECT_THAT(text, HasSubstr("\nmedley_coordinator_embedding_device" + std::string(line) + "\n"));
  }
}

TEST(MetricsPageTest, NeedsATokenWhereOneIsSet) {
  auto readers = http_server::Readers::OfTokens("0123456789abcdef");
  ASSERT_TRUE(readers.ok());
  const auto page = MetricsPage::Start("127.0.0.1", 0, *readers, [] { return job::v1::Observation(); });
  ASSERT_TRUE(page.ok()) << page.status();
  const auto ask = [&](const std::string& more) {
    http_server::RawClient client((*page)->port());
    client.Send("GET /metrics HTTP/1.1\r\nHost: x\r\n" + more + "\r\n");
    return client.Response();
  };
  EXPECT_THAT(ask(""), AllOf(HasSubstr("401"), Not(HasSubstr("medley_"))));
  EXPECT_THAT(ask("Authorization: Bearer 0123456789abcdeg\r\n"), AllOf(HasSubstr("401"), Not(HasSubstr("medley_"))));
  EXPECT_THAT(ask("Authorization: Bearer 0123456789abcdef\r\n"), HasSubstr("medley_coordinator_"));
}

}  // namespace
}  // namespace medley::worker
