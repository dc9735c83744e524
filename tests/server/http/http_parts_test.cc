#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "server/http/error_json.h"
#include "server/http/guard.h"
#include "server/http/json_as_yaml.h"
#include "server/http/metric_series.h"
#include "server/http/routes.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

HttpRequest Post(std::map<std::string, std::string> headers) {
  HttpRequest request;
  request.method = "POST";
  request.headers = std::move(headers);
  return request;
}

TEST(GuardTest, TheNamesOfThisHostAreAllowedWithAnyPort) {
  const Guard guard("127.0.0.1", {"Train.Example"});
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]", "[::1]:8080",
                           "train.example:443", "train.example"}) {
    EXPECT_TRUE(guard.AllowsHost(host)) << host;
  }
}

TEST(GuardTest, OtherNamesAreRefused) {
  const Guard guard("127.0.0.1", {});
  for (const char* host : {"", "evil.example", "localhost.evil.example", "10.0.0.1", "127.0.0.1:x",
                           "[::2]", ":80", "localhost:80:80", "evil.example/localhost"}) {
    EXPECT_FALSE(guard.AllowsHost(host)) << host;
  }
}

TEST(GuardTest, OnAllAddressesAnyAddressIsAllowedButNoName) {
  const Guard guard("0.0.0.0", {});
  EXPECT_TRUE(guard.AllowsHost("10.1.2.3:7071"));
  EXPECT_TRUE(guard.AllowsHost("[fe80::1]:7071"));
  EXPECT_FALSE(guard.AllowsHost("evil.example"));
}

TEST(GuardTest, OnlyPagesOfThisServerMayChangeSomething) {
  EXPECT_TRUE(Guard::AllowsOrigin(Post({{"host", "localhost:80"}})));
  EXPECT_TRUE(
      Guard::AllowsOrigin(Post({{"host", "localhost:80"}, {"origin", "http://localhost:80"}})));
  EXPECT_TRUE(Guard::AllowsOrigin(Post({{"host", "a.example"}, {"origin", "https://A.example"}})));
  for (const char* origin : {"", "null", "http://localhost", "http://localhost:81",
                             "http://evil.example", "ftp://localhost:80"}) {
    EXPECT_FALSE(Guard::AllowsOrigin(Post({{"host", "localhost:80"}, {"origin", origin}})))
        << origin;
  }
  EXPECT_FALSE(
      Guard::AllowsOrigin(Post({{"host", "localhost"}, {"sec-fetch-site", "cross-site"}})));
  EXPECT_TRUE(
      Guard::AllowsOrigin(Post({{"host", "localhost"}, {"sec-fetch-site", "same-origin"}})));
}

TEST(RoutesTest, APathFindsItsCallAndItsFields) {
  const RouteMatch match = FindRoute("GET", "/v1/jobs/digits-1/artifacts/predictions.csv");
  ASSERT_NE(match.route, nullptr);
  EXPECT_STREQ(match.route->rpc, "FetchArtifact");
  EXPECT_THAT(match.fields, ElementsAre(Pair("id", "digits-1"), Pair("name", "predictions.csv")));
  EXPECT_STREQ(FindRoute("POST", "/v1/jobs/a:finish").route->rpc, "FinishJob");
  EXPECT_STREQ(FindRoute("POST", "/v1/jobs/a:predict").route->rpc, "Predict");
  EXPECT_STREQ(FindRoute("POST", "/v1/jobs/a:predictRows").route->rpc, "PredictRows");
  EXPECT_STREQ(FindRoute("HEAD", "/v1/jobs/a").route->rpc, "GetJob");
}

TEST(RoutesTest, WhatIsNoPathIsNotFound) {
  for (const char* path :
       {"", "/v1", "/v1/jobs/", "/v1/jobs/a/", "/v1/jobs/a/b", "/v1/jobs//events",
        "/v1/jobs/a:finish/b", "/v1/jobs/:finish", "v1/jobs"}) {
    EXPECT_EQ(FindRoute("GET", path).route, nullptr) << path;
  }
}

TEST(RoutesTest, AnotherMethodOfAKnownPathTellsThoseThatItHas) {
  const RouteMatch match = FindRoute("POST", "/v1/jobs/a");
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(match.allow, "GET, PATCH, DELETE");
  EXPECT_EQ(FindRoute("POST", "/nothing").allow, "");
}

TEST(RoutesTest, NoRouteHidesAnother) {
  std::set<std::string> seen;
  for (const Route& route : Routes()) {
    EXPECT_TRUE(seen.insert(std::string(route.method) + " " + route.pattern).second)
        << route.pattern;
  }
}

TEST(ErrorJsonTest, AnErrorIsAStatusWithDetails) {
  const HttpResponse response = ErrorResponse(absl::InvalidArgumentError("a \"quoted\"\nword"),
                                              {{"INVALID_FIELD", {{"field", "x"}}}});
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(*response.body,
            "{\"error\":{\"code\":400,\"status\":\"INVALID_ARGUMENT\",\"message\":\"a "
            "\\\"quoted\\\"\\nword\",\"details\":[{\"@type\":\"type.googleapis.com/"
            "google.rpc.ErrorInfo\",\"reason\":\"INVALID_FIELD\",\"domain\":\"traind\","
            "\"metadata\":{\"field\":\"x\"}}]}}\n");
  EXPECT_EQ(ErrorResponse(absl::NotFoundError("no"), {}).status, 404);
  EXPECT_EQ(ErrorResponse(absl::InvalidArgumentError("big"), {}, 413).status, 413);
}

TEST(JsonAsYamlTest, TabsBetweenValuesAndSurrogatesAreReplaced) {
  EXPECT_EQ(JsonAsYaml("{\t\"a\\\"\t\":\t1}"), "{ \"a\\\"\t\": 1}");
  EXPECT_EQ(JsonAsYaml("{\"a\": \"\\ud83d\\ude00!\"}"), "{\"a\": \"\xF0\x9F\x98\x80!\"}");
  // A surrogate alone is no character, and stays for the reader to refuse.
  EXPECT_EQ(JsonAsYaml("{\"a\": \"\\ud83d\"}"), "{\"a\": \"\\ud83d\"}");
  EXPECT_EQ(JsonAsYaml("a:\t\"\\ud83d\\ude00\""), "a:\t\"\\ud83d\\ude00\"");
}

HttpRequest Query(std::vector<std::pair<std::string, std::string>> query) {
  HttpRequest request;
  request.query = std::move(query);
  return request;
}

TEST(SeriesFilterTest, TheQueryIsReadStrictly) {
  SeriesFilter filter;
  ASSERT_TRUE(ReadSeriesFilter(Query({{"names", "a,b"},
                                      {"names", "c"},
                                      {"folds", "0,2"},
                                      {"max_points", "10"},
                                      {"after_sequence", "7"},
                                      {"columns", "true"}}),
                               &filter)
                  .ok());
  EXPECT_THAT(filter.names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(filter.folds, ElementsAre(0, 2));
  EXPECT_EQ(filter.max_points, 10u);
  EXPECT_EQ(filter.after_sequence, 7);
  EXPECT_TRUE(filter.columns);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"folds", "x"},
                                                        {"max_points", "-1"},
                                                        {"max_points", "3"},
                                                        {"after_sequence", "-1"},
                                                        {"columns", "perhaps"},
                                                        {"points", "3"}}) {
    const absl::Status status = ReadSeriesFilter(Query({{key, value}}), &filter);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << key;
    EXPECT_THAT(std::string(status.message()), HasSubstr(key));
  }
}

TEST(ThinnedIndicesTest, ExtremesAndEndsStayWithinTheLimit) {
  std::vector<double> values(10000, 1.0);
  values[1234] = 9;
  values[5678] = -9;
  const std::vector<size_t> kept = ThinnedIndices(values, 100);
  EXPECT_LE(kept.size(), 100u);
  EXPECT_GE(kept.size(), 50u);
  EXPECT_EQ(kept.front(), 0u);
  EXPECT_EQ(kept.back(), 9999u);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_THAT(kept, testing::IsSupersetOf({size_t{1234}, size_t{5678}}));
  EXPECT_EQ(ThinnedIndices(values, 0).size(), values.size());
  EXPECT_EQ(ThinnedIndices(values, 4).size(), 4u);
  EXPECT_THAT(ThinnedIndices({}, 100), IsEmpty());
}

TEST(MetricSeriesTest, PointsAreFilteredAndOrdered) {
  SeriesFilter filter;
  filter.names = {"loss"};
  filter.folds = {1};
  MetricSeries series(filter);
  const absl::Time at = absl::FromUnixMillis(1500);
  series.Add({1, "loss", 1, 4, 10, 0.5, 2.5, at});
  series.Add({2, "rate", 1, 4, 10, 0.5, 0.1, at});
  series.Add({3, "loss", 0, 3, 10, 0.5, 0.7, at});
  series.Add({4, "loss", 1, 4, 20, 1, std::nan(""), at});
  EXPECT_EQ(series.ColumnsJson(),
            "{\"series\":[{\"name\":\"loss\",\"fold\":1,\"attempt\":4,\"points\":2,"
            "\"sequence\":[1,4],\"step\":[10,20],\"epoch\":[0.5,1],\"at_s\":[1.5,1.5],"
            "\"value\":[2.5,\"NaN\"]}],\"last_sequence\":4}");
  ASSERT_EQ(series.Kept().size(), 2u);
  EXPECT_EQ(series.Kept()[1].sequence, 4);
}

}  // namespace
}  // namespace traind
