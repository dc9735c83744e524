#include "server/http/session.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

HttpRequest With(std::map<std::string, std::string> headers, std::string body = "") {
  return {"POST", "/session", {}, std::move(headers), std::move(body)};
}

TEST(SessionTest, TheHeaderGoesBeforeTheCookieAndOtherCookiesSayNothing) {
  EXPECT_EQ(AuthorizationOf(With({})), "");
  EXPECT_EQ(AuthorizationOf(With({{"cookie", "a=b; traind_session=traind_1;c=d"}})),
            "Bearer traind_1");
  EXPECT_EQ(AuthorizationOf(With(
                {{"cookie", "traind_session=traind_1"}, {"authorization", "Bearer traind_2"}})),
            "Bearer traind_2");
  for (const char* const cookie :
       {"traind_session=", "traind_session", "xtraind_session=t", "traind_session=a b",
        "traind_session=\"t\"", "traind_session=a=b", ";;=", "traind_session =t"}) {
    EXPECT_EQ(AuthorizationOf(With({{"cookie", cookie}})), "") << cookie;
  }
}

TEST(SessionTest, ABodyIsATokenOrIsRefused) {
  EXPECT_EQ(TokenOfBody(With({}, " traind_00ff\n")).value(), "Bearer traind_00ff");
  for (const std::string& body : {std::string(), std::string("a; Path=/x"),
                                  std::string("a\r\nSet-Cookie: b=c"), std::string(201, 'a')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(TokenOfBody(With({}, body)).status())) << body;
  }
}

TEST(SessionTest, NoScriptAndNoOtherSiteGetsTheCookie) {
  EXPECT_EQ(SessionCookie("Bearer t1", /*secure=*/true),
            "traind_session=t1; Path=/; HttpOnly; SameSite=Strict; Secure");
  EXPECT_EQ(SessionCookie("", /*secure=*/false),
            "traind_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
}

}  // namespace
}  // namespace traind
