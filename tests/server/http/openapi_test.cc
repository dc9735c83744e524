#include "server/http/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "server/http/routes.h"

namespace traind {
namespace {

using google::protobuf::FileDescriptorSet;

// Calls that no route leads to, each with a reason.
const std::set<std::string>& Exceptions() {
  static const std::set<std::string> exceptions = {
      "UploadParts",  // over HTTP each part is a call of its own: Upload
  };
  return exceptions;
}

FileDescriptorSet Files() {
  std::ifstream in("server/http/service_descriptors.pb", std::ios::binary);
  FileDescriptorSet files;
  EXPECT_TRUE(files.ParseFromIstream(&in));
  return files;
}

nlohmann::json Api() {
  const auto json = OpenApiJson(Files());
  EXPECT_TRUE(json.ok()) << json.status();
  return nlohmann::json::parse(*json);
}

void CollectRefs(const nlohmann::json& in, std::set<std::string>* refs) {
  if (in.is_object() && in.contains("$ref")) refs->insert(in["$ref"].get<std::string>());
  if (!in.is_structured()) return;
  for (const auto& item : in) CollectRefs(item, refs);
}

TEST(OpenApiTest, EachCallHasARouteAndEachRouteACall) {
  std::set<std::string> routed, calls;
  for (const Route& route : Routes()) routed.insert(route.rpc);
  const FileDescriptorSet files = Files();
  for (const auto& file : files.file()) {
    for (const auto& service : file.service()) {
      for (const auto& method : service.method()) calls.insert(method.name());
    }
  }
  ASSERT_GT(calls.size(), 15u);
  for (const std::string& name : Exceptions()) EXPECT_EQ(calls.erase(name), 1u) << name;
  EXPECT_EQ(routed, calls);
}

TEST(OpenApiTest, EveryReferenceIsThere) {
  const nlohmann::json api = Api();
  std::set<std::string> refs;
  CollectRefs(api, &refs);
  EXPECT_GT(refs.size(), 30u);
  for (const std::string& ref : refs) {
    EXPECT_TRUE(api.contains(nlohmann::json::json_pointer(ref.substr(1)))) << ref;
  }
}

TEST(OpenApiTest, CommentsAndEnumsOfTheProtoFileAreInIt) {
  const nlohmann::json api = Api();
  EXPECT_THAT(api["paths"]["/v1/jobs"]["get"]["description"], "Newest first.");
  const nlohmann::json job = api["components"]["schemas"]["Job"]["properties"];
  EXPECT_THAT(job["state"]["enum"], testing::Contains("RUNNING"));
  EXPECT_EQ(job["deadline"]["format"], "date-time");
  const nlohmann::json list = api["paths"]["/v1/jobs"]["get"]["parameters"];
  EXPECT_EQ(list[0]["name"], "states");
  EXPECT_EQ(list[0]["schema"]["type"], "array");
  // What the route sets, no query may.
  for (const auto& parameter :
       api["paths"]["/v1/gc"]["get"].value("parameters", nlohmann::json::array())) {
    EXPECT_NE(parameter["name"], "dry_run");
  }
}

TEST(OpenApiTest, OperationsHaveNamesOfTheirOwn) {
  std::set<std::string> ids;
  const nlohmann::json api = Api();
  for (const auto& path : api["paths"]) {
    for (const auto& operation : path) {
      EXPECT_TRUE(ids.insert(operation["operationId"].get<std::string>()).second);
    }
  }
  EXPECT_EQ(ids.size(), Routes().size());
}

TEST(OpenApiTest, TheTableInTheDocumentsIsThatOfTheRoutes) {
  std::ifstream in("docs/HTTP.md");
  std::stringstream text;
  text << in.rdbuf();
  for (const Route& route : Routes()) {
    EXPECT_THAT(text.str(), testing::HasSubstr(std::string("| `") + route.method + " " +
                                               route.pattern + "` | " + route.rpc));
  }
}

}  // namespace
}  // namespace traind
