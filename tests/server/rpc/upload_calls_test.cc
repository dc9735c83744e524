// Files that clients send in many parts, over gRPC.
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/transfer/zstd_part.h"
#include "server/rpc/receivers.h"
#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

v1::UploadRequest About(const std::string& text) {
  v1::UploadRequest request;
  request.set_sha256(Sha256Hex(text));
  request.set_name("rows.csv");
  request.set_size_bytes(static_cast<int64_t>(text.size()));
  return request;
}

// A call that sends parts.
class Sender {
 public:
  Sender(RpcHouse& house, v1::UploadRequest about, int64_t offset)
      : about_(std::move(about)), writer_(house.client().UploadParts(&context_, &reply_)) {
    about_.set_offset(offset);
  }
  // The first one names the file.
  bool Send(const std::string& content, bool zstd = false) {
    v1::UploadRequest part = std::exchange(about_, {});
    part.set_content(content);
    part.set_zstd(zstd);
    return writer_->Write(part);
  }
  grpc::Status End() {
    writer_->WritesDone();
    return writer_->Finish();
  }
  void Break() {
    context_.TryCancel();
    EXPECT_FALSE(writer_->Finish().ok());
  }
  const v1::UploadReply& reply() const { return reply_; }

 private:
  grpc::ClientContext context_;
  v1::UploadReply reply_;
  v1::UploadRequest about_;
  std::unique_ptr<grpc::ClientWriter<v1::UploadRequest>> writer_;
};

// What traind says is there; waits until it is at least `bytes`.
v1::UploadReply Ask(RpcHouse& house, const v1::UploadRequest& about, int64_t bytes) {
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (true) {
    grpc::ClientContext context;
    v1::UploadReply reply;
    const grpc::Status status = house.client().Upload(&context, about, &reply);
    if (status.ok() && reply.offset() >= bytes) return reply;
    if (absl::Now() > end) {
      ADD_FAILURE() << status.error_message() << reply.ShortDebugString();
      return reply;
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
}

// Until so many bytes of some file have come.
bool HaveCome(RpcHouse& house, uint64_t bytes) {
  return Eventually([&] {
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             absl::StrCat(house.folder(), "/", kUploadsDir), none)) {
      if (entry.is_regular_file(none) && entry.file_size(none) == bytes) return true;
    }
    return false;
  });
}

TEST(UploadPartsTest, AFileComesInOneCall) {
  RpcHouse house;
  const std::string text = "a,b\n1,2\n3,4\n";
  Sender sender(house, About(text), 0);
  ASSERT_TRUE(sender.Send(text.substr(0, 4)) && sender.Send(text.substr(4, 4)) &&
              sender.Send(text.substr(8)));
  const grpc::Status status = sender.End();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(sender.reply().present());
  EXPECT_EQ(ReadFile(sender.reply().path()).value(), text);
  // Another call finds it.
  Sender again(house, About(text), 0);
  again.Send(text);
  EXPECT_TRUE(again.End().ok());
  EXPECT_TRUE(again.reply().present());
}

TEST(UploadPartsTest, PartsMayBeCompressed) {
  RpcHouse house;
  std::string text;
  for (int row = 0; row < 1000; ++row) absl::StrAppend(&text, row % 7, ",0.5,abc\n");
  EXPECT_TRUE(Ask(house, About(text), 0).zstd());
  PartPacker packer;
  std::string part = text.substr(0, 5000);
  ASSERT_TRUE(packer.Pack(part));
  EXPECT_LT(part.size(), 1000u);
  Sender sender(house, About(text), 0);
  ASSERT_TRUE(sender.Send(part, true) && sender.Send(text.substr(5000), false));
  const grpc::Status status = sender.End();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(ReadFile(sender.reply().path()).value(), text);
  // What is no frame is no content.
  const std::string other = "x" + text;
  Sender wrong(house, About(other), 0);
  wrong.Send(other, true);
  EXPECT_EQ(wrong.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(UploadPartsTest, WhatCameOfABrokenCallStaysAndAnotherGoesOn) {
  RpcHouse house;
  const std::string text = "a,b\n1,2\n3,4\n";
  {
    Sender sender(house, About(text), 0);
    ASSERT_TRUE(sender.Send(text.substr(0, 4)) && sender.Send(text.substr(4, 4)));
    ASSERT_TRUE(HaveCome(house, 8));
    sender.Break();
  }
  const v1::UploadReply there = Ask(house, About(text), 8);
  ASSERT_FALSE(there.present());
  Sender elsewhere(house, About(text), there.offset() + 1);
  elsewhere.Send("x");
  const grpc::Status refused = elsewhere.End();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ABORTED) << refused.error_message();
  Sender rest(house, About(text), there.offset());
  ASSERT_TRUE(rest.Send(text.substr(static_cast<size_t>(there.offset()))));
  ASSERT_TRUE(rest.End().ok());
  EXPECT_TRUE(rest.reply().present());
  EXPECT_EQ(ReadFile(rest.reply().path()).value(), text);
}

TEST(UploadPartsTest, ACallThatEndsEarlyTellsWhatIsThere) {
  RpcHouse house;
  const std::string text = "a,b\n1,2\n";
  Sender sender(house, About(text), 0);
  ASSERT_TRUE(sender.Send(text.substr(0, 5)));
  ASSERT_TRUE(sender.End().ok());
  EXPECT_FALSE(sender.reply().present());
  EXPECT_EQ(sender.reply().offset(), 5);
  EXPECT_NE(access(sender.reply().path().c_str(), F_OK), 0);
}

TEST(UploadPartsTest, OtherBytesThanPromisedAreDropped) {
  RpcHouse house;
  const std::string text = "a,b\n1,2\n";
  Sender sender(house, About(text), 0);
  ASSERT_TRUE(sender.Send("a,b\n9,2\n"));
  EXPECT_EQ(sender.End().error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Ask(house, About(text), 0).offset(), 0);
}

TEST(UploadPartsTest, ATooLargePartIsRefused) {
  RpcHouse house;
  const std::string text((3 << 20) + 1, 'x');
  Sender sender(house, About(text), 0);
  sender.Send(text);
  EXPECT_EQ(sender.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(UploadPartsTest, TwoDoNotSendOneFileAtOnce) {
  RpcHouse house;
  const std::string text = "a,b\n1,2\n3,4\n";
  Sender first(house, About(text), 0);
  ASSERT_TRUE(first.Send(text.substr(0, 4)));
  ASSERT_TRUE(HaveCome(house, 4));
  grpc::ClientContext context;
  v1::UploadReply reply;
  const grpc::Status refused = house.client().Upload(&context, About(text), &reply);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << refused.error_message();
  ASSERT_TRUE(first.Send(text.substr(4)));
  ASSERT_TRUE(first.End().ok());
  EXPECT_TRUE(first.reply().present());
}

// Takes Receivers::kStall.
TEST(UploadPartsTest, AStalledCallGivesItsFileUp) {
  RpcHouse house;
  const std::string text = "a,b\n1,2\n3,4\n";
  Sender stalled(house, About(text), 0);
  ASSERT_TRUE(stalled.Send(text.substr(0, 4)));
  ASSERT_TRUE(HaveCome(house, 4));
  const v1::UploadReply there = Ask(house, About(text), 4);
  ASSERT_EQ(there.offset(), 4);
  Sender rest(house, About(text), 4);
  ASSERT_TRUE(rest.Send(text.substr(4)));
  ASSERT_TRUE(rest.End().ok());
  EXPECT_EQ(ReadFile(rest.reply().path()).value(), text);
  EXPECT_EQ(stalled.End().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(ReceiversTest, OnlyACallThatHasStalledIsEnded) {
  int ended = 0;
  Receivers patient(absl::Hours(1)), strict(absl::ZeroDuration());
  for (Receivers* const receivers : {&patient, &strict}) {
    receivers->NotePart("a", [&] { ++ended; });
    receivers->EndStalled("b");
    receivers->EndStalled("a");
  }
  EXPECT_EQ(ended, 1);
  strict.Forget("a");
  strict.EndStalled("a");
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace traind
