#include "cli/complete.h"
#include "cli/unknown_command.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

namespace medley::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

class CompleteTest : public testing::Test {
 protected:
  CompleteTest() {
    CLI::App* logs = app_.add_subcommand("logs", "");
    logs->add_option("JOB", text_);
    logs->add_option("--role", text_);
    logs->add_flag("-f,--follow", flag_);
    logs->add_option("-n,--namespace", text_);
    CLI::App* plan = app_.add_subcommand("plan", "");
    plan->add_option("file", text_);
    plan->add_option("--from", text_);
    plan->add_option("-o,--output", text_);
    app_.add_subcommand("completion", "")->add_subcommand("bash", "");
    app_.add_subcommand("explain", "")->add_option("JOB", text_);
  }
  Candidates At(const std::vector<std::string>& words) {
    return Complete(app_, words, [](const std::vector<std::string>&) {
      return std::vector<std::string>{"adult", "ads", "movies"};
    });
  }
  CLI::App app_;
  std::string text_;
  bool flag_ = false;
};

TEST_F(CompleteTest, Commands) {
  EXPECT_THAT(At({""}).words, ElementsAre("completion", "explain", "logs", "plan"));
  EXPECT_THAT(At({"pl"}).words, ElementsAre("plan"));
  EXPECT_THAT(At({"completion", ""}).words, ElementsAre("bash"));
  EXPECT_THAT(At({"nonsense", ""}).words, IsEmpty());
  EXPECT_THAT(At({}).words, IsEmpty());
}

TEST_F(CompleteTest, AnUnknownCommandIsNamedWithTheOneThatWasMeant) {
  EXPECT_EQ(UnknownCommand(app_, {"lgos", "adult"}), "unknown command 'lgos'; did you mean `logs`?");
  EXPECT_EQ(UnknownCommand(app_, {"nonsense"}), "unknown command 'nonsense'; medley --help lists all");
  EXPECT_EQ(UnknownCommand(app_, {"logs"}), "");
  EXPECT_EQ(UnknownCommand(app_, {"--version"}), "");
  EXPECT_EQ(UnknownCommand(app_, {}), "");
}

TEST_F(CompleteTest, NamesOfJobs) {
  EXPECT_THAT(At({"logs", "ad"}).words, ElementsAre("ads", "adult"));
  EXPECT_FALSE(At({"logs", "ad"}).files);
  EXPECT_THAT(At({"logs", "-f", ""}).words, ElementsAre("ads", "adult", "movies")) << "a flag takes no value";
  EXPECT_THAT(At({"plan", "--from", "m"}).words, ElementsAre("movies"));
  EXPECT_THAT(At({"explain", ""}).words, ElementsAre("ads", "adult", "movies"));
  EXPECT_TRUE(At({"explain", "./x"}).files);
}

TEST_F(CompleteTest, OptionsAndTheirValues) {
  EXPECT_THAT(At({"logs", "--ro"}).words, ElementsAre("--role"));
  EXPECT_THAT(At({"logs", "adult", "--role", "t"}).words, ElementsAre("trainer"));
  EXPECT_THAT(At({"plan", "-o", ""}).words, Contains("request"));
  EXPECT_TRUE(At({"plan", ""}).files);
}

}  // namespace
}  // namespace medley::cli
