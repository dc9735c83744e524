// Where a bucket is, and what a store says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "common/base/durable_file.h"
#include "server/objects/s3_answers.h"
#include "server/objects/s3_location.h"

namespace traind {
namespace {

using testing::HasSubstr;

Environ Of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  };
}

TEST(S3Location, ABucketIsFoundAsTheToolsOfAwsFindIt) {
  const S3Location plain = ParseS3Location("s3://models/lab/one/", Of({})).value();
  EXPECT_EQ(plain.bucket, "models");
  EXPECT_EQ(plain.prefix, "lab/one/");
  EXPECT_EQ(plain.region, "us-east-1");
  EXPECT_EQ(plain.url, "https://models.s3.us-east-1.amazonaws.com");
  const S3Location region =
      ParseS3Location("s3://models", Of({{"AWS_DEFAULT_REGION", "eu-west-1"}})).value();
  EXPECT_EQ(region.prefix, "");
  EXPECT_EQ(region.url, "https://models.s3.eu-west-1.amazonaws.com");
  // No certificate is valid for two dots.
  EXPECT_EQ(ParseS3Location("s3://a.b", Of({})).value().url,
            "https://s3.us-east-1.amazonaws.com/a.b");
  EXPECT_EQ(ParseS3Location("s3://models", Of({{"AWS_ENDPOINT_URL", "http://other"},
                                               {"AWS_ENDPOINT_URL_S3", "https://ceph:9000/"}}))
                .value()
                .url,
            "https://ceph:9000/models");
}

TEST(S3Location, WhatIsNoBucketIsRefusedInWords) {
  for (const char* const wrong : {"s3://", "s3://ab", "s3://Models", "s3://models//x",
                                  "s3://models/../x", "s3://models/a b", "s3:/models", "/models"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseS3Location(wrong, Of({})).status())) << wrong;
  }
  EXPECT_THAT(
      ParseS3Location("s3://models", Of({{"AWS_ENDPOINT_URL", "ceph:9000"}})).status().message(),
      HasSubstr("AWS_ENDPOINT_URL"));
}

TEST(S3Credentials, TheyComeFromTheEnvironmentOrAProfile) {
  const auto named =
      ReadS3Credentials(Of({{"AWS_ACCESS_KEY_ID", "k"}, {"AWS_SECRET_ACCESS_KEY", "s"}})).value();
  EXPECT_EQ(named.key + named.secret + named.session, "ks");
  const std::string path = testing::TempDir() + "/credentials";
  ASSERT_EQ(WriteFileDurably(path,
                             "# mine\n[default]\naws_access_key_id = one\n"
                             "aws_secret_access_key=two/+=\n\n[lab]\naws_access_key_id=three\n"
                             "aws_secret_access_key = four\naws_session_token = five\n[half]\n"
                             "aws_access_key_id=six\n"),
            absl::OkStatus());
  const auto of = [&](const std::string& profile) {
    return ReadS3Credentials(Of({{"AWS_SHARED_CREDENTIALS_FILE", path}, {"AWS_PROFILE", profile}}));
  };
  EXPECT_EQ(of("")->key, "one");
  EXPECT_EQ(of("")->secret, "two/+=");
  EXPECT_EQ(of("lab")->session, "five");
  EXPECT_THAT(of("half").status().message(), HasSubstr("profile half"));
  EXPECT_TRUE(absl::IsFailedPrecondition(of("none").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadS3Credentials(Of({{"HOME", "/nowhere"}})).status()));
}

TEST(S3Text, KeysAreEncodedAsSignaturesWantThem) {
  EXPECT_EQ(UrlEncoded("jobs/a b/é+~.csv", true), "jobs/a%20b/%C3%A9%2B~.csv");
  EXPECT_EQ(UrlEncoded("a/b=", false), "a%2Fb%3D");
}

constexpr char kPage[] =
    "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated>"
    "<NextContinuationToken>a&amp;b==</NextContinuationToken>"
    "<Contents><Key>jobs/a%20b</Key><Size>12</Size>"
    "<ETag>&quot;0123456789abcdef0123456789abcdef&quot;</ETag></Contents>"
    "<Contents><ETag>\"0123456789abcdef0123456789abcdef-2\"</ETag><Key>jobs/c+d%2Be</Key>"
    "<Size>0</Size></Contents></ListBucketResult>";

TEST(S3Text, AListIsRead) {
  const S3Page page = ParseS3Page(kPage).value();
  EXPECT_EQ(page.next, "a&b==");
  ASSERT_EQ(page.objects.size(), 2u);
  EXPECT_EQ(page.objects[0].key, "jobs/a b");
  EXPECT_EQ(page.objects[0].bytes, 12);
  EXPECT_EQ(page.objects[0].md5, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(page.objects[1].key, "jobs/c d+e");
  EXPECT_EQ(page.objects[1].md5, "");  // it came in parts
}

TEST(S3Text, ATornOrForeignListIsNoList) {
  const std::string page = kPage;
  for (size_t end = 0; end < page.size(); ++end) {
    EXPECT_FALSE(ParseS3Page(page.substr(0, end)).ok()) << end;
  }
  EXPECT_FALSE(ParseS3Page("<html>sign in</html>").ok());
  std::string no_size = page;
  no_size.replace(no_size.find("<Size>12"), 8, "<Size>-1");
  EXPECT_FALSE(ParseS3Page(no_size).ok());
}

TEST(S3Text, AnErrorIsOneLine) {
  EXPECT_EQ(
      S3ErrorText("<Error><Code>NoSuchKey</Code><Message>It is\ngone &lt;1&gt;</Message></Error>"),
      "NoSuchKey: It is gone <1>");
  EXPECT_EQ(S3ErrorText("nothing"), "");
}

}  // namespace
}  // namespace traind
