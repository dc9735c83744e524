#include "server/http/event_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace traind {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class EventHubTest : public ::testing::Test {
 protected:
  EventHubTest() { Change(JobState::kRunning); }
  ~EventHubTest() override {
    views_.Close();
    hub_.Stop();
  }

  void Change(JobState state) {
    auto job = std::make_shared<Job>();
    job->id = "a";
    job->state = state;
    views_.Update({std::move(job)});
  }

  std::shared_ptr<HttpStream> Follow(const std::string& last_event_id) {
    auto stream = std::make_shared<HttpStream>();
    stream->Attach([] {}, [] {});
    hub_.Follow("a", last_event_id, stream);
    return stream;
  }

  // Returns all that waits in the stream.
  static std::string Read(HttpStream& stream) {
    std::string all;
    char bytes[1000];
    int64_t got = 0;
    while ((got = stream.Read(bytes, sizeof(bytes))) > 0) all.append(bytes, bytes + got);
    return all;
  }

  std::string id() const { return hub_.EventId(views_.Find("a")); }

  JobViews views_;
  EventHub hub_{&views_, "boot", [](const std::string& id) {
                  return RenderedJob{id, "{}", /*version=*/1, /*over=*/false};
                }};
};

TEST_F(EventHubTest, TheFirstToFollowGetsTheJobUnlessItHasIt) {
  const std::string last = id();
  EXPECT_THAT(Read(*Follow(last)), Not(HasSubstr("event: job")));
}

TEST_F(EventHubTest, AnIdOfAnotherProcessIsNoIdOfThisOne) {
  EXPECT_THAT(Read(*Follow("other-1")), HasSubstr("id: " + id()));
}

TEST_F(EventHubTest, LaterFollowersGetTheJobUnlessTheyHaveIt) {
  const auto first = Follow("");
  EXPECT_THAT(Read(*first), HasSubstr("id: " + id()));
  EXPECT_THAT(Read(*Follow(id())), Not(HasSubstr("event: job")));
  EXPECT_THAT(Read(*Follow("")), HasSubstr("id: " + id()));
}

// Nothing is sent to a Job that does not change, so its list still has them.
TEST_F(EventHubTest, ClientsThatHaveGoneDoNotCount) {
  const auto first = Follow(""), second = Follow("");
  EXPECT_EQ(hub_.streams(), 2);
  first->Close();
  EXPECT_EQ(hub_.streams(), 1);
  second->Close();
  EXPECT_EQ(hub_.streams(), 0);
}

}  // namespace
}  // namespace traind
