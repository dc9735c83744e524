// Sends the requests of grpcurl and health probes to the real traind.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/descriptor_database.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "proto/health.grpc.pb.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/reflection.grpc.pb.h"

namespace traind {
namespace {

namespace reflection = grpc::reflection::v1alpha;
using testing::IsSupersetOf;

class ReflectionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = DaemonProcess::Start(std::getenv("TRAIND_BINARY"));
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = started->release();
  }
  static void TearDownTestSuite() {
    delete daemon_;
    daemon_ = nullptr;
  }

  void SetUp() override {
    ASSERT_NE(daemon_, nullptr);
    channel_ = grpc::CreateChannel(daemon_->address(), grpc::InsecureChannelCredentials());
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }

  reflection::ServerReflectionResponse Ask(const reflection::ServerReflectionRequest& request) {
    auto stub = reflection::ServerReflection::NewStub(channel_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    auto stream = stub->ServerReflectionInfo(&context);
    reflection::ServerReflectionResponse response;
    EXPECT_TRUE(stream->Write(request));
    EXPECT_TRUE(stream->Read(&response));
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    return response;
  }

  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  static DaemonProcess* daemon_;
};

DaemonProcess* ReflectionTest::daemon_ = nullptr;

TEST_F(ReflectionTest, TheServerAndTheTrainingServiceAreHealthy) {
  auto stub = grpc::health::v1::Health::NewStub(channel_);
  for (const char* service : {"", "traind.v1.TrainingService"}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    grpc::health::v1::HealthCheckResponse response;
    const grpc::Status status = stub->Check(&context, request, &response);
    ASSERT_TRUE(status.ok()) << service << ": " << status.error_message();
    EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING) << service;
  }
}

TEST_F(ReflectionTest, TheHealthOfAnUnknownServiceIsNotFound) {
  auto stub = grpc::health::v1::Health::NewStub(channel_);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service("nobody.Service");
  grpc::health::v1::HealthCheckResponse response;
  EXPECT_EQ(stub->Check(&context_, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ReflectionTest, AllServicesAreListed) {
  reflection::ServerReflectionRequest request;
  request.set_list_services("*");
  std::vector<std::string> names;
  const reflection::ServerReflectionResponse response = Ask(request);
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, IsSupersetOf({"traind.v1.TrainingService", "grpc.health.v1.Health",
                                   "grpc.reflection.v1alpha.ServerReflection"}));
}

TEST_F(ReflectionTest, TheDescriptorsAreEnoughToCallEveryMethod) {
  for (const char* service : {"traind.v1.TrainingService", "grpc.health.v1.Health"}) {
    reflection::ServerReflectionRequest request;
    request.set_file_containing_symbol(service);
    // Fetches files by symbol and their imports by file name, as grpcurl does.
    std::map<std::string, google::protobuf::FileDescriptorProto> files;
    std::set<std::string> wanted;
    auto take = [&](const reflection::ServerReflectionResponse& response) {
      EXPECT_EQ(response.error_response().error_message(), "") << service;
      for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
        google::protobuf::FileDescriptorProto file;
        ASSERT_TRUE(file.ParseFromString(bytes));
        for (const std::string& import : file.dependency()) wanted.insert(import);
        files[file.name()] = file;
      }
    };
    take(Ask(request));
    for (size_t before = 0; before != files.size();) {
      before = files.size();
      for (const std::string& name : std::set<std::string>(wanted)) {
        if (files.count(name) > 0) continue;
        request.set_file_by_filename(name);
        take(Ask(request));
      }
    }
    google::protobuf::SimpleDescriptorDatabase database;
    for (const auto& [name, file] : files) database.Add(file);
    google::protobuf::DescriptorPool pool(&database);
    const auto* descriptor = pool.FindServiceByName(service);
    ASSERT_NE(descriptor, nullptr) << service;
    EXPECT_GT(descriptor->method_count(), 1);
  }
}

TEST_F(ReflectionTest, AnUnknownSymbolIsAnError) {
  reflection::ServerReflectionRequest request;
  request.set_file_containing_symbol("traind.v1.Nothing");
  EXPECT_EQ(Ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace traind
