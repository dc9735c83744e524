#include "server/http/json_api.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <google/protobuf/message.h>

#include <map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/spec/field_text.h"
#include "common/spec/yaml_bind.h"
#include "common/spec/yaml_spec.h"
#include "common/wire/error_details.h"
#include "common/wire/render_json.h"
#include "proto/training_service.pb.h"
#include "server/http/error_json.h"
#include "server/http/json_as_yaml.h"
#include "server/http/metric_series.h"
#include "server/rpc/call_record.h"
#include "server/rpc/job_conversion.h"
#include "server/rpc/training_calls.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A request of PredictRows has a value for each cell.
constexpr int kMostValues = 2000000;

using SharedMessage = std::shared_ptr<Message>;
using TakeReply = std::function<void(const absl::Status&, SharedMessage)>;

// A call without its types.
struct Call {
  std::function<SharedMessage()> make_request;
  std::function<void(const Caller& caller, SharedMessage request, TakeReply take)> run;
};

template <typename Request, typename ReplyMessage>
Call Erase(TrainingCalls* calls, void (TrainingCalls::*call)(const Request&, ReplyMessage*, Done)) {
  return {[] { return std::make_shared<Request>(); },
          [calls, call](const Caller&, SharedMessage request, TakeReply take) {
            auto reply = std::make_shared<ReplyMessage>();
            const auto& typed = static_cast<const Request&>(*request);
            (calls->*call)(typed, reply.get(),
                           [request, reply, take = std::move(take)](const absl::Status& status) {
                             take(status, reply);
                           });
          }};
}

template <typename Request, typename ReplyMessage>
Call Erase(TrainingCalls* calls,
           absl::Status (TrainingCalls::*call)(const Request&, ReplyMessage*)) {
  return {[] { return std::make_shared<Request>(); },
          [calls, call](const Caller&, SharedMessage request, TakeReply take) {
            auto reply = std::make_shared<ReplyMessage>();
            const auto& typed = static_cast<const Request&>(*request);
            const absl::Status status = (calls->*call)(typed, reply.get());
            take(status, reply);
          }};
}

template <typename Request, typename ReplyMessage>
Call Erase(TrainingCalls* calls,
           void (TrainingCalls::*call)(const Caller&, const Request&, ReplyMessage*, Done)) {
  return {[] { return std::make_shared<Request>(); },
          [calls, call](const Caller& caller, SharedMessage request, TakeReply take) {
            auto reply = std::make_shared<ReplyMessage>();
            const auto& typed = static_cast<const Request&>(*request);
            (calls->*call)(caller, typed, reply.get(),
                           [request, reply, take = std::move(take)](const absl::Status& status) {
                             take(status, reply);
                           });
          }};
}

template <typename Request, typename ReplyMessage>
Call Erase(TrainingCalls* calls,
           absl::Status (TrainingCalls::*call)(const Caller&, const Request&, ReplyMessage*)) {
  return {[] { return std::make_shared<Request>(); },
          [calls, call](const Caller& caller, SharedMessage request, TakeReply take) {
            auto reply = std::make_shared<ReplyMessage>();
            const auto& typed = static_cast<const Request&>(*request);
            const absl::Status status = (calls->*call)(caller, typed, reply.get());
            take(status, reply);
          }};
}

// By the names that the table of routes uses.
std::map<std::string, Call> CallsByName(TrainingCalls* calls) {
  const auto predict_rows = [calls](const Caller&, SharedMessage request, TakeReply take) {
    CallLimits limits;
    limits.cancelled = [] { return false; };
    auto reply = std::make_shared<v1::PredictRowsReply>();
    const auto& typed = static_cast<const v1::PredictRowsRequest&>(*request);
    const absl::Status status = calls->PredictRows(typed, limits, reply.get());
    take(status, reply);
  };
  // All events in one reply.
  const auto events = [calls](const Caller&, const SharedMessage& request, const TakeReply& take) {
    auto typed = static_cast<const v1::GetEventsRequest&>(*request);
    typed.set_follow(false);
    auto all = std::make_shared<v1::EventsReply>();
    const absl::Status status = calls->GetEvents(typed, {[&all](const v1::EventsReply& reply) {
                                                           all->MergeFrom(reply);
                                                           return true;
                                                         },
                                                         [] { return false; }});
    take(status, all);
  };
  // The replies of the stream as one, up to a bound.
  const auto get_logs = [calls](const Caller&, SharedMessage request, TakeReply take) {
    constexpr int kMostLines = 10'000;
    auto reply = std::make_shared<v1::LogsReply>();
    const auto add = [&reply](const v1::LogsReply& part) {
      reply->MergeFrom(part);
      return reply->lines_size() < kMostLines;
    };
    const auto& typed = static_cast<const v1::GetLogsRequest&>(*request);
    const absl::Status status = calls->GetLogs(typed, {add, [] { return false; }});
    take(reply->lines_size() < kMostLines ? status : absl::OkStatus(), reply);
  };
  return {
      {"GetLogs", {[] { return std::make_shared<v1::GetLogsRequest>(); }, get_logs}},
      {"GetSpec", Erase(calls, &TrainingCalls::GetSpec)},
      {"Submit", Erase(calls, &TrainingCalls::Submit)},
      {"SubmitBatch", Erase(calls, &TrainingCalls::SubmitBatch)},
      {"Plan", Erase(calls, &TrainingCalls::Plan)},
      {"Upload", Erase(calls, &TrainingCalls::Upload)},
      {"GetJob", Erase(calls, &TrainingCalls::GetJob)},
      {"ListJobs", Erase(calls, &TrainingCalls::ListJobs)},
      {"FinishJob", Erase(calls, &TrainingCalls::FinishJob)},
      {"CancelJob", Erase(calls, &TrainingCalls::CancelJob)},
      {"PauseJob", Erase(calls, &TrainingCalls::PauseJob)},
      {"ResumeJob", Erase(calls, &TrainingCalls::ResumeJob)},
      {"UpdateJob", Erase(calls, &TrainingCalls::UpdateJob)},
      {"DeleteJob", Erase(calls, &TrainingCalls::DeleteJob)},
      {"PinJob", Erase(calls, &TrainingCalls::PinJob)},
      {"ListTrials", Erase(calls, &TrainingCalls::ListTrials)},
      {"ProposeTrial", Erase(calls, &TrainingCalls::ProposeTrial)},
      {"Predict", Erase(calls, &TrainingCalls::Predict)},
      {"PredictRows", {[] { return std::make_shared<v1::PredictRowsRequest>(); }, predict_rows}},
      {"GetEvents", {[] { return std::make_shared<v1::GetEventsRequest>(); }, events}},
      {"ListWorkers", Erase(calls, &TrainingCalls::ListWorkers)},
      {"UpdateWorker", Erase(calls, &TrainingCalls::UpdateWorker)},
      {"ListQuotas", Erase(calls, &TrainingCalls::ListQuotas)},
      {"SetQuota", Erase(calls, &TrainingCalls::SetQuota)},
      {"RemoveQuota", Erase(calls, &TrainingCalls::RemoveQuota)},
      {"CollectGarbage", Erase(calls, &TrainingCalls::CollectGarbage)},
  };
}

HttpResponse JsonResponse(std::string json) {
  HttpResponse response;
  response.content_type = "application/json";
  response.body = std::make_shared<const std::string>(std::move(json) + "\n");
  return response;
}

// A request's text after it was read: its mistakes, and the places of its fields.
struct Bound {
  std::vector<SpecProblem> problems;
  std::map<std::string, std::string> places;
  std::string prefix;  // of the paths of a spec's fields: "spec." where the body names it

  std::string PlaceOf(const std::string& field) const {
    SpecReadResult result;
    result.places = places;
    return result.PlaceOf(prefix + field);
  }
};

// "body:9:3" as line 9 and column 3.
void AddPlace(const std::string& place, ErrorDetail& detail) {
  const std::vector<std::string> parts = absl::StrSplit(place, ':');
  if (parts.size() == 3 && parts[0] == "body") {
    detail.metadata["line"] = parts[1];
    detail.metadata["column"] = parts[2];
  } else if (!place.empty()) {
    detail.metadata["place"] = place;
  }
}

HttpResponse ProblemResponse(const Bound& bound) {
  std::vector<ErrorDetail> details;
  std::vector<std::string> lines;
  for (const SpecProblem& problem : bound.problems) {
    ErrorDetail detail{kInvalidField,
                       {{"field", problem.field_path}, {"message", problem.message}}};
    AddPlace(problem.place, detail);
    details.push_back(std::move(detail));
    lines.push_back(problem.ToString());
  }
  return ErrorResponse(absl::InvalidArgumentError(absl::StrJoin(lines, "\n")), details);
}

HttpResponse CallErrorResponse(const absl::Status& status, const Bound& bound) {
  std::vector<ErrorDetail> details = DetailsOf(status);
  for (ErrorDetail& detail : details) {
    const auto field = detail.metadata.find("field");
    if (field != detail.metadata.end()) AddPlace(bound.PlaceOf(field->second), detail);
  }
  return ErrorResponse(status, details);
}

SeriesPoint FromProto(const v1::MetricPoint& from) {
  return {from.sequence(),
          from.name(),
          from.fold(),
          from.attempt(),
          from.step(),
          from.epoch(),
          from.value(),
          absl::FromUnixSeconds(from.at().seconds()) + absl::Nanoseconds(from.at().nanos())};
}

v1::MetricPoint ToProto(const SeriesPoint& from) {
  return traind::ToProto(from.sequence, MetricPoint{"", from.at, from.fold, from.attempt, from.step,
                                                    from.epoch, from.name, from.value});
}

const FieldDescriptor* FieldAt(const Descriptor& type, absl::string_view path) {
  const std::vector<std::string> keys = absl::StrSplit(path, '.');
  const FieldDescriptor* field = nullptr;
  const Descriptor* in = &type;
  for (const std::string& key : keys) {
    field = in == nullptr ? nullptr : in->FindFieldByName(key);
    if (field == nullptr || field->is_map()) return field;
    in = field->message_type();
  }
  return field;
}

// The query as values that go on top of the body. A repeated field takes "a,b" and several values.
std::vector<SpecOverride> OverridesOf(const HttpRequest& request, const Descriptor& type) {
  std::map<std::string, SpecOverride> overrides;
  for (const auto& [key, value] : request.query) {
    const FieldDescriptor* const field = FieldAt(type, key);
    const size_t equals = value.find('=');
    if (field != nullptr && field->is_map() && key == field->name() && equals != value.npos) {
      // labels=team=vision, which may be repeated
      const std::string path = absl::StrCat(key, ".", value.substr(0, equals));
      overrides[path] = {"query " + Printable(key), path, value.substr(equals + 1)};
      continue;
    }
    SpecOverride& override = overrides[key];
    const bool first = override.path.empty();
    override.flag = "query " + Printable(key);
    override.path = key;
    if (field != nullptr && field->is_repeated() && !field->is_map()) {
      override.value = first
                           ? absl::StrCat("[", value, "]")
                           : absl::StrCat(absl::StripSuffix(override.value, "]"), ",", value, "]");
    } else {
      override.value = value;
    }
  }
  std::vector<SpecOverride> list;
  for (auto& [key, override] : overrides) list.push_back(std::move(override));
  return list;
}

}  // namespace

class JsonApi::Impl {
 public:
  Impl(TrainingCalls* calls, JsonApiOptions options)
      : calls_(calls), options_(std::move(options)), by_name_(CallsByName(calls)) {}

  void Answer(const RouteMatch& match, const Caller& caller,
              const std::shared_ptr<const HttpRequest>& request, Respond respond) {
    if (match.route->kind == RouteKind::kSeries) return respond(Series(match, *request));
    if (match.route->kind == RouteKind::kFile) return respond(File(match));
    const Call& call = by_name_.at(match.route->rpc);
    SharedMessage message = call.make_request();
    const auto bound = std::make_shared<Bound>(Bind(match, *request, *message));
    if (!bound->problems.empty()) return respond(ProblemResponse(*bound));
    // `this` may be gone when the call is answered.
    call.run(
        caller, message,
        [defer = options_.defer, record = options_.record, rpc = match.route->rpc, caller, bound,
         message,
         respond = std::move(respond)](const absl::Status& status, const SharedMessage& reply) {
          if (record != nullptr) record(caller, rpc, SubjectOf(*message, *reply), status);
          if (!status.ok()) return respond(CallErrorResponse(status, *bound));
          // The control loop's thread, on which this may run, has better things to do.
          defer([reply, respond] {
            HttpResponse response = JsonResponse(ToJsonLine(*reply));
            if (const auto* const submitted = dynamic_cast<const v1::SubmitReply*>(reply.get())) {
              response.headers.emplace_back("Location",
                                            absl::StrCat("/v1/jobs/", submitted->job().id()));
            }
            respond(std::move(response));
          });
        });
  }

  v1::ListWorkersReply Workers() const {
    v1::ListWorkersReply reply;
    calls_->ListWorkers({}, &reply).IgnoreError();
    return reply;
  }

  absl::StatusOr<RenderedJob> RenderJob(const std::string& id_or_name) const {
    v1::GetJobRequest request;
    request.set_id(id_or_name);
    v1::Job job;
    if (absl::Status status = calls_->GetJob(request, &job); !status.ok()) return status;
    const bool over = job.state() == v1::JOB_STATE_SUCCEEDED ||
                      job.state() == v1::JOB_STATE_FAILED || job.state() == v1::JOB_STATE_CANCELLED;
    return RenderedJob{job.id(), ToJsonLine(job), job.version(), over};
  }

 private:
  Bound Bind(const RouteMatch& match, const HttpRequest& request, Message& message) const {
    Bound bound;
    SpecReadOptions read;
    read.file = "body";
    read.base_dir = options_.data_root;
    read.now = SystemClock().WallNow();
    read.root = "the request";
    read.most_values = kMostValues;
    const std::string body = match.route->kind == RouteKind::kPart ? "" : JsonAsYaml(request.body);
    const Descriptor& type = *message.GetDescriptor();
    if (match.route->kind == RouteKind::kSpec) {
      BindSpec(request, body, read, message, bound);
    } else {
      read.overrides = OverridesOf(request, type);
      const bool has_body = match.route->kind == RouteKind::kBody;
      if (match.route->kind == RouteKind::kPart) {
        message.GetReflection()->SetString(&message, type.FindFieldByName("content"), request.body);
      }
      BindYaml(has_body ? body : "", read, message, bound.problems, bound.places);
      SetFixed(match.route->fixed, request, message, bound);
    }
    for (const auto& [name, value] : match.fields) {
      CheckCharacters(value, "path", name, bound);
      message.GetReflection()->SetString(&message, type.FindFieldByName(name), value);
    }
    const absl::string_view key = request.Header("idempotency-key");
    const FieldDescriptor* const request_id = type.FindFieldByName("request_id");
    if (!key.empty() && request_id != nullptr) {
      CheckCharacters(key, "header Idempotency-Key", request_id->name(), bound);
      message.GetReflection()->SetString(&message, request_id, std::string(key));
    }
    return bound;
  }

  // The query cannot say otherwise: a GET changes nothing, and follows nothing.
  static void SetFixed(absl::string_view fixed, const HttpRequest& request, Message& message,
                       Bound& bound) {
    if (fixed.empty()) return;
    const std::pair<std::string, std::string> field = absl::StrSplit(fixed, '=');
    for (const auto& [key, value] : request.query) {
      if (key != field.first || value == field.second) continue;
      bound.problems.push_back(
          {"query " + key, key, absl::StrCat(key, " is always ", field.second), ""});
    }
    ScalarText scalar;
    scalar.text = field.second;
    SetFieldFromText(*message.GetDescriptor()->FindFieldByName(field.first), scalar, message)
        .IgnoreError();
  }

  static void CheckCharacters(absl::string_view text, const std::string& place,
                              const std::string& field, Bound& bound) {
    YamlError error;
    if (YamlTree::CheckCharacters(text, error)) return;
    bound.problems.push_back({place, field, absl::StrCat(field, ": ", error.message), ""});
  }

  // The body is a spec, or a request with one under `spec`.
  static void BindSpec(const HttpRequest& request, const std::string& body, SpecReadOptions read,
                       Message& message, Bound& bound) {
    const Descriptor& type = *message.GetDescriptor();
    const FieldDescriptor* const spec_text = type.FindFieldByName("spec_text");
    if (HasKey(body, "spec")) {
      read.overrides = OverridesOf(request, type);
      BindYaml(body, read, message, bound.problems, bound.places);
      bound.prefix = "spec.";
    } else {
      SpecReadOptions bare = read;
      bare.root = "the spec";
      SpecReadResult spec = ReadSpec(body, bare);
      bound.problems = std::move(spec.problems);
      bound.places = std::move(spec.places);
      message.GetReflection()
          ->MutableMessage(&message, type.FindFieldByName("spec"))
          ->CopyFrom(spec.spec);
      read.overrides = OverridesOf(request, type);
      std::map<std::string, std::string> unused;
      BindYaml("", read, message, bound.problems, unused);
    }
    if (spec_text != nullptr && message.GetReflection()->GetString(message, spec_text).empty()) {
      message.GetReflection()->SetString(&message, spec_text, request.body);
    }
  }

  // Whether the text is a map with this key at its top.
  static bool HasKey(const std::string& text, absl::string_view key) {
    YamlTree tree;
    YamlError error;
    const auto root = tree.Parse(text, 0, error);
    if (!root || tree.at(*root).kind != YamlNode::Kind::kMap) return false;
    for (const auto& [name, value] : tree.at(*root).entries) {
      if (tree.at(name).text == key) return true;
    }
    return false;
  }

  HttpResponse Series(const RouteMatch& match, const HttpRequest& request) const {
    SeriesFilter filter;
    if (const absl::Status wrong = ReadSeriesFilter(request, &filter); !wrong.ok()) {
      return CallErrorResponse(wrong, {});
    }
    v1::GetMetricsRequest ask;
    ask.set_id(match.fields[0].second);
    ask.set_after_sequence(filter.after_sequence);
    MetricSeries series(filter);
    const absl::Status status =
        calls_->GetMetrics(ask, {[&series](const v1::MetricsReply& reply) {
                                   for (const v1::MetricPoint& point : reply.points())
                                     series.Add(FromProto(point));
                                   return true;
                                 },
                                 [] { return false; }});
    if (!status.ok()) return CallErrorResponse(status, {});
    if (filter.columns) return JsonResponse(series.ColumnsJson());
    v1::MetricsReply reply;
    for (const SeriesPoint& point : series.Kept()) *reply.add_points() = ToProto(point);
    reply.set_end(true);
    return JsonResponse(ToJsonLine(reply));
  }

  HttpResponse File(const RouteMatch& match) const {
    v1::FetchArtifactRequest ask;
    ask.set_id(match.fields[0].second);
    ask.set_name(match.fields[1].second);
    auto reader = calls_->OpenArtifact(ask);
    if (!reader.ok()) return CallErrorResponse(reader.status(), {});
    if (reader->is_pack()) {
      return CallErrorResponse(absl::InvalidArgumentError(absl::StrCat(
                                   "name: ", ask.name(), " comes over gRPC alone: trainctl fetch")),
                               {});
    }
    HttpResponse response;
    response.content_type = absl::EndsWith(ask.name(), ".csv")    ? "text/csv; charset=utf-8"
                            : absl::EndsWith(ask.name(), ".json") ? "application/json"
                                                                  : "application/octet-stream";
    response.headers.emplace_back("Content-Disposition",
                                  absl::StrCat("attachment; filename=\"", ask.name(), "\""));
    response.headers.emplace_back("ETag", absl::StrCat("\"", reader->digest().sha256, "\""));
    response.headers.emplace_back("X-Content-SHA256", reader->digest().sha256);
    response.file_bytes = reader->digest().bytes;
    response.file = reader->TakeFile();
    return response;
  }

  TrainingCalls* const calls_;
  const JsonApiOptions options_;
  const std::map<std::string, Call> by_name_;
};

JsonApi::JsonApi(TrainingCalls* calls, JsonApiOptions options)
    : impl_(std::make_unique<Impl>(calls, std::move(options))) {}

JsonApi::~JsonApi() = default;

void JsonApi::Answer(const RouteMatch& match, const Caller& caller,
                     std::shared_ptr<const HttpRequest> request, Respond respond) {
  impl_->Answer(match, caller, request, std::move(respond));
}

v1::ListWorkersReply JsonApi::Workers() const { return impl_->Workers(); }

absl::StatusOr<RenderedJob> JsonApi::RenderJob(const std::string& id_or_name) const {
  return impl_->RenderJob(id_or_name);
}

}  // namespace traind
