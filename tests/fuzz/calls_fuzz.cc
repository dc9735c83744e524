// Answers a sequence of calls. Each line is a call over HTTP, "METHOD PATH?QUERY BODY", or "W" and
// a Worker's message as Protobuf's text. Each call is answered, never by an internal error, and
// what callers have left in traind can be read by others.
#include <absl/strings/match.h>
#include <absl/strings/str_split.h>
#include <absl/synchronization/notification.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "server/http/json_api.h"
#include "server/http/routes.h"
#include "tests/fuzz/check.h"
#include "tests/server/rpc/rpc_house.h"

namespace {

using namespace traind;

constexpr size_t kMostCalls = 10;
constexpr int kMostSequences = 200;  // of a house

struct House {
  RpcHouse rpc;
  JsonApi api{&rpc.calls(), {rpc.folder(), [](const std::function<void()>& work) { work(); }}};
  std::unique_ptr<ScriptedWorker> worker = std::make_unique<ScriptedWorker>(rpc, "w1", 2);
  int sequences = 0;
};

// Jobs pile up in a house, so that it is replaced now and then.
House& CurrentHouse() {
  static auto& house = *new std::unique_ptr<House>;
  if (house == nullptr || house->sequences++ == kMostSequences) {
    house.reset();
    house = std::make_unique<House>();
  }
  return *house;
}

HttpRequest RequestOf(absl::string_view line) {
  HttpRequest request;
  const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
  request.method = words[0];
  const std::pair<std::string, std::string> target =
      absl::StrSplit(words.size() > 1 ? words[1] : "", absl::MaxSplits('?', 1));
  request.path = target.first;
  for (const absl::string_view part : absl::StrSplit(target.second, '&', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> field = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (field.first == "idempotency-key") {
      request.headers[field.first] = field.second;
    } else {
      request.query.push_back(field);
    }
  }
  if (words.size() > 2) request.body = words[2];
  return request;
}

struct Answer {
  absl::Notification given;
  HttpResponse response;
};

void Call(House& house, absl::string_view line) {
  const auto request = std::make_shared<const HttpRequest>(RequestOf(line));
  const RouteMatch match = FindRoute(request->method, request->path);
  if (match.route == nullptr || match.route->kind == RouteKind::kEvents) return;
  const auto answer = std::make_shared<Answer>();
  house.api.Answer(match, Caller(), request, [answer](HttpResponse response) {
    answer->response = std::move(response);
    answer->given.Notify();
  });
  Check(answer->given.WaitForNotificationWithTimeout(absl::Seconds(20)), "a call is answered");
  const HttpResponse& response = answer->response;
  if (response.file >= 0) close(response.file);
  Check(response.status != 500, "no caller causes an internal error");
  if (response.content_type != "application/json" || response.body == nullptr) return;
  Check(nlohmann::json::accept(*response.body), "an answer is JSON");
}

void Report(House& house, absl::string_view text) {
  v1::WorkerMessage message;
  google::protobuf::TextFormat::Parser parser;
  class Silent final : public google::protobuf::io::ErrorCollector {
    void AddError(int, int, const std::string&) override {}
  } silent;
  parser.RecordErrorsTo(&silent);
  if (!parser.ParseFromString(std::string(text), &message)) return;
  house.worker->Send(message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  House& house = CurrentHouse();
  size_t calls = 0;
  for (const absl::string_view line : absl::StrSplit(Bytes(data, size), '\n', absl::SkipEmpty())) {
    if (++calls > kMostCalls) break;
    if (absl::StartsWith(line, "W ")) {
      Report(house, line.substr(2));
    } else {
      Call(house, line);
    }
  }
  grpc::ClientContext context;
  v1::ListJobsReply jobs;
  const grpc::Status listed = house.rpc.client().ListJobs(&context, {}, &jobs);
  Check(listed.ok(), "Jobs are listed");
  return 0;
}
