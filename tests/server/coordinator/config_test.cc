#include "server/config.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/engine_version.h"

namespace traind {
namespace {

using testing::HasSubstr;

struct Result {
  ParsedFlags flags;
  std::string out, err;
};

Result Parse(std::vector<std::string> args) {
  args.insert(args.begin(), "traind");
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Result result;
  result.flags = ParseFlags(static_cast<int>(argv.size()), argv.data());
  result.out = testing::internal::GetCapturedStdout();
  result.err = testing::internal::GetCapturedStderr();
  return result;
}

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::string folder = absl::StrCat(testing::TempDir(), "/config.XXXXXX");
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    char* const real = realpath(folder.c_str(), nullptr);
    folder_ = real;
    free(real);
    state_ = absl::StrCat(folder_, "/state");
  }
  std::string folder_, state_;
};

TEST_F(ConfigTest, AStandbyNeedsAnArchiveAndARestoreAnother) {
  const std::vector<std::string> base = {"--state", state_, "--data-root", folder_};
  const auto with = [&base](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return Parse(std::move(more));
  };
  EXPECT_THAT(with({"--standby"}).err, HasSubstr("it needs --artifacts"));
  EXPECT_THAT(with({"--restore", folder_ + "/none"}).err, HasSubstr("--restore"));
  EXPECT_THAT(with({"--restore", folder_, "--artifacts", folder_}).err, HasSubstr("its own way"));
  EXPECT_THAT(with({"--artifacts", folder_, "--takeover-after", "5ms"}).err,
              HasSubstr("1s to 10m"));
  const Result right = with({"--artifacts", folder_ + "/a", "--standby", "--takeover-after", "9s"});
  ASSERT_FALSE(right.flags.exit_code) << right.err;
  EXPECT_EQ(right.flags.config.artifacts, folder_ + "/a");
  EXPECT_TRUE(right.flags.config.standby);
  EXPECT_EQ(right.flags.config.takeover_after, absl::Seconds(9));
}

TEST_F(ConfigTest, TheFlagsOfTheReadmeAreTaken) {
  const Result result = Parse({"--standalone", "--state", state_, "--listen", "127.0.0.1:0",
                               "--data-root", folder_, "--data-root", "/", "--slots", "3"});
  ASSERT_FALSE(result.flags.exit_code) << result.err;
  const Config& config = result.flags.config;
  EXPECT_TRUE(config.standalone);
  EXPECT_EQ(config.state_dir, state_);
  EXPECT_EQ(config.listen, "127.0.0.1:0");
  EXPECT_EQ(config.data_roots, (std::vector<std::string>{folder_, "/"}));
  EXPECT_EQ(config.slots, 3);
  EXPECT_EQ(access(state_.c_str(), X_OK), 0) << "the state folder is made";
}

TEST_F(ConfigTest, LimitsOfOwnersAreNumbersAndThereAreNoneByDefault) {
  const auto with = [this](std::vector<std::string> more) {
    more.insert(more.end(), {"--state", state_, "--data-root", folder_});
    return Parse(std::move(more));
  };
  EXPECT_EQ(with({}).flags.config.owner_jobs, 0);
  EXPECT_EQ(with({}).flags.config.owner_slots, 0);
  const Config config = with({"--owner-jobs", "40", "--owner-slots", "8"}).flags.config;
  EXPECT_EQ(config.owner_jobs, 40);
  EXPECT_EQ(config.owner_slots, 8);
  EXPECT_THAT(with({"--owner-slots", "-1"}).err, HasSubstr("--owner-slots"));
}

TEST_F(ConfigTest, StandaloneReadsBelowTheFolderItWasStartedIn) {
  ASSERT_EQ(chdir(folder_.c_str()), 0);
  const Result result = Parse({"--standalone", "--state", "state"});
  ASSERT_FALSE(result.flags.exit_code) << result.err;
  EXPECT_EQ(result.flags.config.data_roots, std::vector<std::string>{folder_});
  EXPECT_EQ(result.flags.config.state_dir, state_);
  EXPECT_EQ(result.flags.config.listen, "127.0.0.1:7070");
  EXPECT_EQ(result.flags.config.slots, -1);
  EXPECT_EQ(*Parse({"--state", "state"}).flags.exit_code, kExitUsage) << "only standalone";
}

TEST_F(ConfigTest, WhatIsWrongIsSaidAndEndsWith2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
      {{}, "--state"},
      {{"--state", state_, "--standalone", "--lisen", "127.0.0.1:0"}, "did you mean '--listen'"},
      {{"--state", state_, "--standalone", "--listen", "0.0.0.0:1"}, "--insecure"},
      {{"--state", state_, "--standalone", "--listen", "7070"}, "HOST:PORT"},
      {{"--state", state_, "--standalone", "--listen", "127.0.0.1:70700"}, "not a port"},
      {{"--state", state_, "--standalone", "--data-root", folder_ + "/no"}, "--data-root"},
      {{"--state", "/proc/nothing/here", "--standalone"}, "--state"},
      {{"--standalone", "--sate", state_}, "there is no flag --sate; did you mean '--state'?"},
      {{"--state", state_, "--standalone", "--slots", "many"}, "--slots"},
      {{"--state", state_, "--standalone", "--slots", "-2"}, "--slots"},
      {{"--state", state_, "--standalone", "--slots", "4096"}, "--slots: 4096 slots on "},
      {{"--state", state_, "--data-root", "/", "--slots", "2"}, "--standalone"},
      {{"--state", state_, "--standalone", "--log-level", "loud"}, "--log-level"},
  };
  for (const auto& [args, text] : all) {
    const Result result = Parse(args);
    ASSERT_TRUE(result.flags.exit_code) << text;
    EXPECT_EQ(*result.flags.exit_code, kExitUsage) << text;
    EXPECT_THAT(result.err, HasSubstr(text));
    EXPECT_THAT(result.err, HasSubstr("traind: error: "));
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(ConfigTest, ARightFlagIsNotSuggestedForItself) {
  EXPECT_EQ(Parse({}).err.find("did you mean"), std::string::npos);
  for (const char* slots : {"--slots=two", "--slots=9999"}) {
    const Result result = Parse({"--state", state_, "--standalone", slots});
    EXPECT_EQ(result.err.find("did you mean"), std::string::npos) << result.err;
  }
}

TEST_F(ConfigTest, BeyondLoopbackNeedsAWord) {
  const Result result =
      Parse({"--state", state_, "--data-root", "/", "--listen", "0.0.0.0:7070", "--insecure"});
  EXPECT_FALSE(result.flags.exit_code) << result.err;
  for (const std::string listen : {"localhost:1", "127.0.0.2:1", "[::1]:1"}) {
    EXPECT_FALSE(Parse({"--state", state_, "--data-root", "/", "--listen", listen}).flags.exit_code)
        << listen;
  }
}

TEST_F(ConfigTest, HelpAndVersionAreNoErrors) {
  const Result help = Parse({"--help"});
  EXPECT_EQ(*help.flags.exit_code, kExitOk);
  EXPECT_THAT(help.out, HasSubstr("--data-root"));
  EXPECT_THAT(help.out, HasSubstr("Exit codes"));
  const Result version = Parse({"--version"});
  EXPECT_EQ(*version.flags.exit_code, kExitOk);
  EXPECT_EQ(version.out, absl::StrCat("traind ", kTraindVersion, "\n"));
}

}  // namespace
}  // namespace traind
