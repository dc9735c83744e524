#include "worker/rank_protocol/line_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "worker/rank_protocol/messages.h"

namespace traind::rank_protocol {
namespace {

constexpr absl::Duration kLong = absl::Seconds(20);

class LineChannelTest : public ::testing::Test {
 protected:
  LineChannelTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    near_ = std::make_unique<LineChannel>(fds[0], fds[0]);
    far_fd_ = fds[1];
    far_ = std::make_unique<LineChannel>(fds[1], fds[1]);
  }
  void SendRaw(absl::string_view bytes) {
    ASSERT_EQ(write(far_fd_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  std::unique_ptr<LineChannel> near_, far_;
  int far_fd_;
};

TEST_F(LineChannelTest, LinesArriveWholeAndInOrder) {
  ASSERT_TRUE(far_->WriteLine("one", kLong).ok());
  ASSERT_TRUE(far_->WriteLine("", kLong).ok());
  ASSERT_TRUE(far_->WriteLine("three", kLong).ok());
  EXPECT_EQ(*near_->ReadLine(kLong), "one");
  EXPECT_EQ(*near_->ReadLine(absl::ZeroDuration()), "");
  EXPECT_EQ(*near_->ReadLine(absl::ZeroDuration()), "three");
  EXPECT_TRUE(absl::IsDeadlineExceeded(near_->ReadLine(absl::ZeroDuration()).status()));
}

TEST_F(LineChannelTest, APartOfALineWaitsForItsRest) {
  SendRaw("ha");
  EXPECT_TRUE(absl::IsDeadlineExceeded(near_->ReadLine(absl::Milliseconds(1)).status()));
  SendRaw("lf\nnext");
  EXPECT_EQ(*near_->ReadLine(kLong), "half");
  EXPECT_TRUE(absl::IsDeadlineExceeded(near_->ReadLine(absl::ZeroDuration()).status()));
}

TEST_F(LineChannelTest, LinesBeforeTheEndOfInputAreStillRead) {
  SendRaw("last\nunfinished");
  far_.reset();
  EXPECT_EQ(*near_->ReadLine(kLong), "last");
  EXPECT_TRUE(absl::IsOutOfRange(near_->ReadLine(kLong).status()));
  EXPECT_TRUE(absl::IsOutOfRange(near_->ReadLine(kLong).status()));
}

TEST_F(LineChannelTest, WritingToADeadPeerIsAnErrorNotASignal) {
  far_.reset();
  absl::Status status;
  for (int i = 0; i < 3 && status.ok(); ++i) status = near_->WriteLine("x", kLong);
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
}

TEST_F(LineChannelTest, ALineOverTheLimitEndsReading) {
  std::thread writer([this] {
    const std::string big(kMaxLineBytes + 100'000, 'x');
    (void)far_->WriteLine(big, kLong);
  });
  EXPECT_TRUE(absl::IsInvalidArgument(near_->ReadLine(kLong).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(near_->ReadLine(kLong).status()));
  near_.reset();  // lets the writer go
  writer.join();
}

TEST_F(LineChannelTest, DroppableLinesAreDroppedWholeWhenThereIsNoRoom) {
  const std::string line(10'000, 'p');
  int sent = 0;
  while (near_->TryWriteLine(line)) ASSERT_LT(++sent, 10'000);
  ASSERT_GT(sent, 0);
  EXPECT_FALSE(near_->TryWriteLine("small"));
  // A fact goes after what is on the way, none of it torn.
  std::thread fact([this] { EXPECT_TRUE(near_->WriteLine("fact", kLong).ok()); });
  int whole = 0;
  while (true) {
    const absl::StatusOr<std::string> got = far_->ReadLine(kLong);
    ASSERT_TRUE(got.ok()) << got.status();
    if (*got == "fact") break;
    ASSERT_EQ(*got, line);
    ++whole;
  }
  EXPECT_EQ(whole, sent);
  fact.join();
}

TEST_F(LineChannelTest, QueuedLinesGoOutByFlush) {
  const std::string big(2 << 20, 'q');
  ASSERT_TRUE(near_->QueueLine(big).ok());
  ASSERT_TRUE(near_->QueueLine("end").ok());
  EXPECT_TRUE(near_->HasUnwritten());
  std::thread reader([&] {
    EXPECT_EQ(far_->ReadLine(kLong)->size(), big.size());
    EXPECT_EQ(*far_->ReadLine(kLong), "end");
  });
  while (near_->HasUnwritten()) ASSERT_TRUE(near_->Flush().ok());
  reader.join();
}

TEST_F(LineChannelTest, APeerThatNeverReadsIsRefusedNotBufferedForEver) {
  const std::string big(3 << 20, 'q');
  absl::Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) status = near_->QueueLine(big);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST(LineChannelPipeTest, PipesWorkAndKeepTheirFlags) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const int flags = fcntl(fds[1], F_GETFL);
  LineChannel out(-1, fds[1]);
  LineChannel in(fds[0], -1);
  const std::string big(300'000, 'b');
  std::thread writer([&] { EXPECT_TRUE(out.WriteLine(big, kLong).ok()); });
  EXPECT_EQ(*in.ReadLine(kLong), big);
  writer.join();
  EXPECT_EQ(fcntl(fds[1], F_GETFL), flags);
  // Full pipe: no wait, no half line.
  while (out.TryWriteLine(std::string(3'000, 'x'))) {
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(out.WriteLine("y", absl::Milliseconds(1))));
}

}  // namespace
}  // namespace traind::rank_protocol
