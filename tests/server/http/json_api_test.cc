#include "server/http/json_api.h"

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/http/routes.h"
#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

using testing::HasSubstr;

class JsonApiTest : public testing::Test {
 protected:
  // Returns the status and the body of the answer.
  std::pair<int, std::string> Call(const HttpRequest& request) {
    const RouteMatch match = FindRoute(request.method, request.path);
    absl::Notification given;
    HttpResponse response;
    api_.Answer(match, caller_, std::make_shared<const HttpRequest>(request),
                [&](HttpResponse answer) {
                  response = std::move(answer);
                  given.Notify();
                });
    EXPECT_TRUE(given.WaitForNotificationWithTimeout(absl::Seconds(20)));
    return {response.status, response.body == nullptr ? "" : *response.body};
  }

  RpcHouse house_;
  Caller caller_;
  std::vector<std::string> recorded_;
  JsonApi api_{&house_.calls(),
               {house_.folder(), [](const std::function<void()>& work) { work(); },
                [this](const Caller& caller, const std::string& rpc, const std::string& subject,
                       const absl::Status& outcome) {
                  recorded_.push_back(absl::StrCat(caller.name, " ", rpc, " ", subject, " ",
                                                   absl::StatusCodeToString(outcome.code())));
                }}};
};

TEST_F(JsonApiTest, AJobBelongsToItsCallerAndNobodyElseChangesIt) {
  const std::string spec =
      R"({"api":"v1","name":"mine","task":{"type":"classification"},"model":{"mlp":{}},)"
      R"("data":{"train":"train.csv","test":"test.csv","target":"kind"},)"
      R"("budget":{"time":"600s"}})";
  caller_ = {"ann", Role::kUser};
  ASSERT_EQ(Call({"POST", "/v1/jobs", {}, {}, spec}).first, 200);
  caller_ = {"bob", Role::kUser};
  const auto [status, body] = Call({"POST", "/v1/jobs/mine:cancel", {}, {}, ""});
  EXPECT_EQ(status, 403);
  EXPECT_THAT(body, HasSubstr("belongs to ann"));
  EXPECT_EQ(Call({"GET", "/v1/jobs/mine", {}, {}, ""}).first, 200);
  ASSERT_EQ(recorded_.size(), 3u);
  EXPECT_THAT(recorded_[0], testing::MatchesRegex("ann Submit [a-z0-9-]+ OK"));
  EXPECT_EQ(recorded_[1], "bob CancelJob mine PERMISSION_DENIED");
}

TEST_F(JsonApiTest, ABatchAnswersEachEntryAndIsRecordedWithTheJobsThatItMade) {
  caller_ = {"ann", Role::kUser};
  const std::string common =
      R"("task":{"type":"classification"},"model":{"mlp":{}},"budget":{"time":"600s"},"data":{"train":"train.csv",)";
  const auto [status, body] = Call({"POST",
                                    "/v1/jobs:batch",
                                    {},
                                    {},
                                    R"({"submits":[{"request_id":"a","spec":{"api":"v1",)" +
                                        common + R"("target":"kind"}}},{"spec":{"api":"v1",)" +
                                        common + R"("target":"nobody"}}}]})"});
  ASSERT_EQ(status, 200) << body;
  EXPECT_THAT(body, HasSubstr(R"("created":true)"));
  EXPECT_THAT(body, HasSubstr(R"("status":"OK")"));
  EXPECT_THAT(body, HasSubstr(R"("status":"INVALID_ARGUMENT")"));
  EXPECT_THAT(body, HasSubstr("nobody"));
  ASSERT_EQ(recorded_.size(), 1u);
  EXPECT_THAT(recorded_[0], testing::MatchesRegex("ann SubmitBatch job-[a-z0-9]+ OK"));
}

TEST_F(JsonApiTest, AGetCollectsNoGarbageWhateverItsQuery) {
  const auto [status, body] = Call({"GET", "/v1/gc", {{"dry_run", "false"}}, {}, ""});
  EXPECT_EQ(status, 400);
  EXPECT_THAT(body, HasSubstr("query dry_run: error: dry_run is always true"));
  EXPECT_EQ(Call({"GET", "/v1/gc", {{"dry_run", "true"}}, {}, ""}).first, 200);
}

TEST_F(JsonApiTest, LogsAreNotFollowedBecauseTheAnswerWouldHaveNoEnd) {
  house_.Submit(house_.GoodSpec());
  const auto [status, body] = Call({"GET", "/v1/jobs/digits/logs", {{"follow", "true"}}, {}, ""});
  EXPECT_EQ(status, 400);
  EXPECT_THAT(body, HasSubstr("is always false"));
}

TEST_F(JsonApiTest, BytesThatAreNoTextAreRefusedWhereverTheyStand) {
  const std::string spec =
      R"({"api":"v1","task":{"type":"classification"},"data":{"train":"train.csv","target":"kind"}})";
  for (const HttpRequest& request : std::vector<HttpRequest>{
           {"GET", "/v1/jobs/\xff", {}, {}, ""},
           {"GET", "/v1/jobs", {{"owner", "\xff"}}, {}, ""},
           {"POST", "/v1/jobs", {}, {{"idempotency-key", "\xff"}}, spec},
           {"POST", "/v1/jobs", {{"owner", "a\x1b"}}, {}, spec},
       }) {
    const auto [status, body] = Call(request);
    EXPECT_EQ(status, 400) << body;
    EXPECT_THAT(body, testing::AnyOf(HasSubstr("not UTF-8 text: byte 0xff"),
                                     HasSubstr("control character 0x1b")));
  }
}

}  // namespace
}  // namespace traind
