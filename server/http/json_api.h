// The calls of TrainingService as JSON: requests from path, query and body, replies and errors as
// JSON. The one file of this room that sees the messages of the calls.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "proto/training_service.pb.h"
#include "server/access/caller.h"
#include "server/http/message.h"
#include "server/http/routes.h"

namespace traind {

class TrainingCalls;

// Takes who called what about which Job or owner, and how that ended.
using RecordCall = std::function<void(const Caller& caller, const std::string& rpc,
                                      const std::string& subject, const absl::Status& outcome)>;

struct JsonApiOptions {
  // Relative paths of a spec are below this folder.
  std::string data_root;
  // Runs work on a thread where it may take a moment.
  std::function<void(std::function<void()>)> defer;
  RecordCall record{};  // empty: nobody records
};

// A Job as it is sent to those who follow it.
struct RenderedJob {
  std::string id;
  std::string json;  // in one line
  int64_t version = 0;
  bool over = false;
};

// Threads: safe. Ownership: `calls` outlives it.
class JsonApi {
 public:
  JsonApi(TrainingCalls* calls, JsonApiOptions options);
  ~JsonApi();

  // Answers a request of a route that is not kEvents. May block as long as the call takes.
  void Answer(const RouteMatch& match, const Caller& caller,
              std::shared_ptr<const HttpRequest> request, Respond respond);
  // id_or_name: as in GetJob.
  absl::StatusOr<RenderedJob> RenderJob(const std::string& id_or_name) const;

  v1::ListWorkersReply Workers() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace traind
