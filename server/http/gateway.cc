#include "server/http/gateway.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <utility>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/engine_version.h"
#include "common/base/status_macros.h"
#include "server/http/assets.h"
#include "server/http/error_json.h"
#include "server/http/event_hub.h"
#include "server/http/http_server.h"
#include "server/http/json_api.h"
#include "server/http/metrics_page.h"
#include "server/http/routes.h"
#include "server/http/session.h"
#include "server/loop/control_loop.h"
#include "server/loop/publish_pool.h"

namespace traind {
namespace {

// Calls that read views and rows of the store, and calls that may wait for files or Ranks.
// Whoever may call it may read the page of metrics.
constexpr char kMetricsRpc[] = "GetMetrics";
constexpr char kMetricsPath[] = "/metrics";
// Whoever may call it may sign in.
constexpr char kSignInRpc[] = "ListJobs";
constexpr int kRenderThreads = 2;
constexpr int kQuickThreads = 3;
constexpr int kSlowThreads = 8;
constexpr int kMostStreams = 256;
constexpr size_t kEtagDigits = 32;

HttpResponse Text(int status, const char* type, std::string text) {
  HttpResponse response;
  response.status = status;
  response.content_type = type;
  response.body = std::make_shared<const std::string>(std::move(text));
  return response;
}

HttpResponse NotFound(const HttpRequest& request) {
  return ErrorResponse(absl::NotFoundError(absl::StrCat("there is nothing at ", request.path,
                                                        "; /openapi.json describes what there is")),
                       {{"UNKNOWN_PATH", {{"path", request.path}}}});
}

HttpResponse WrongMethod(const HttpRequest& request, const std::string& allow) {
  HttpResponse response =
      ErrorResponse(absl::UnimplementedError(
                        absl::StrCat(request.path, " takes ", allow, ", not ", request.method)),
                    {{"WRONG_METHOD", {{"allow", allow}}}}, 405);
  response.headers.emplace_back("Allow", allow);
  return response;
}

std::function<void(std::function<void()>)> DeferTo(std::weak_ptr<PublishPool> pool) {
  return [pool = std::move(pool)](std::function<void()> work) {
    if (const auto alive = pool.lock()) alive->Add(std::move(work), absl::InfinitePast());
  };
}

// Gives the answer to a GET an ETag by its bytes; 304 if the client has them.
HttpResponse WithEtag(const HttpRequest& request, HttpResponse response) {
  response.headers.emplace_back("Cache-Control", "no-cache");
  if (response.status != 200 || response.body == nullptr || ChangesState(request.method)) {
    return response;
  }
  const std::string etag =
      absl::StrCat("W/\"", Sha256Hex(*response.body).substr(0, kEtagDigits), "\"");
  response.headers.emplace_back("ETag", etag);
  if (!absl::StrContains(request.Header("if-none-match"), etag)) return response;
  response.status = 304;
  response.content_type.clear();
  response.body = nullptr;
  return response;
}

}  // namespace

class HttpGateway::Impl {
 public:
  Impl(const HttpGatewayOptions& options, TrainingCalls* calls, ControlLoop* loop)
      : loop_(loop),
        grpc_figures_(options.grpc_figures),
        admit_(options.admit),
        tls_(!options.tls_dir.empty()),
        tokens_(options.tokens),
        renders_(std::make_shared<PublishPool>(kRenderThreads)),
        api_(calls, {options.data_root, DeferTo(renders_), options.record}),
        events_(&loop->views(), absl::StrCat(absl::Hex(absl::ToUnixNanos(SystemClock().WallNow()))),
                [this](const std::string& id) { return api_.RenderJob(id); }) {}

  absl::Status Listen(const HttpGatewayOptions& options) {
    HttpServerOptions server;
    server.address = options.address;
    server.names = options.names;
    server.tls_dir = options.tls_dir;
    ASSIGN_OR_RETURN(
        server_, HttpServer::Listen(
                     server, [this](std::shared_ptr<const HttpRequest> request, Respond respond) {
                       Handle(std::move(request), std::move(respond));
                     }));
    return absl::OkStatus();
  }

  int port() const { return server_->port(); }

  void Stop() {
    if (server_ == nullptr) return;
    events_.Stop();
    server_->Stop();
  }

 private:
  // On the server's thread.
  void Handle(std::shared_ptr<const HttpRequest> request, Respond respond) {
    const RouteMatch match = FindRoute(request->method, request->path);
    const bool metrics = request->path == kMetricsPath && !ChangesState(request->method);
    Caller caller;
    if (admit_ != nullptr && (metrics || match.route != nullptr)) {
      auto admitted = admit_(metrics ? kMetricsRpc : match.route->rpc, *request);
      if (!admitted.ok()) return respond(ErrorResponse(admitted.status(), {}));
      caller = *std::move(admitted);
    }
    if (metrics) {
      return Run(false, [this, respond = std::move(respond)] { respond(Metrics()); });
    }
    if (request->path == kSessionPath) return respond(Session(*request));
    if (match.route == nullptr) return respond(HandleOther(*request, match.allow));
    respond = Counted(match.route->rpc, std::move(respond));
    Run(match.route->slow,
        [this, match, caller, request = std::move(request), respond = std::move(respond)] {
          if (match.route->kind == RouteKind::kEvents) {
            return respond(Events(match.fields[0].second, match, request));
          }
          api_.Answer(match, caller, request, [request, respond](HttpResponse response) {
            respond(WithEtag(*request, std::move(response)));
          });
        });
  }

  // Counts the answer when it is given.
  Respond Counted(const char* method, Respond respond) const {
    const absl::Duration begin = SystemClock().MonotonicNow();
    return
        [figures = figures_, method, begin, respond = std::move(respond)](HttpResponse response) {
          figures->Add(method, absl::StrCat(response.status), SystemClock().MonotonicNow() - begin);
          respond(std::move(response));
        };
  }

  HttpResponse Metrics() {
    MetricsInput input;
    input.version = kTraindVersion;
    input.now = loop_->Now();
    input.active = loop_->views().Active();
    input.loop = loop_->figures();
    input.grpc = grpc_figures_();
    input.http = figures_->counts();
    input.http_connections = server_->connections();
    input.event_streams = events_.streams();
    input.workers = api_.Workers();
    return Text(200, "text/plain; version=0.0.4; charset=utf-8", MetricsPage(input));
  }

  // Signs the user of a browser in or out.
  HttpResponse Session(const HttpRequest& request) const {
    std::string authorization;
    if (request.method == "POST") {
      auto token = TokenOfBody(request);
      if (!token.ok()) return ErrorResponse(token.status(), {});
      authorization = *std::move(token);
      HttpRequest signed_in = request;
      signed_in.headers["authorization"] = authorization;
      if (admit_ != nullptr) {
        const auto caller = admit_(kSignInRpc, signed_in);
        if (!caller.ok()) return ErrorResponse(caller.status(), {});
      }
    } else if (request.method != "DELETE") {
      return WrongMethod(request, "POST, DELETE");
    }
    HttpResponse response;
    response.status = 204;
    response.headers.emplace_back("Set-Cookie", SessionCookie(authorization, tls_));
    return response;
  }

  // Answers what is no call.
  HttpResponse HandleOther(const HttpRequest& request, const std::string& allow) const {
    if (!allow.empty()) return WrongMethod(request, allow);
    const bool reads = !ChangesState(request.method);
    if (request.path == kMetricsPath) return WrongMethod(request, "GET");
    const bool live = request.path == "/healthz" || request.path == "/readyz";
    if (!live && !HasAsset(request.path)) return NotFound(request);
    if (!reads) return WrongMethod(request, "GET");
    if (live) return Health();
    return AssetResponse(request);
  }

  HttpResponse Health() const {
    const absl::Status fatal = loop_->fatal();
    if (fatal.ok()) return Text(200, "text/plain; charset=utf-8", "ok\n");
    return Text(503, "text/plain; charset=utf-8",
                absl::StrCat("the store failed: ", fatal.message(), "\n"));
  }

  HttpResponse Events(const std::string& id_or_name, const RouteMatch& match,
                      const std::shared_ptr<const HttpRequest>& request) {
    const auto job = api_.RenderJob(id_or_name);
    if (!job.ok()) {
      return ErrorResponse(job.status(), DetailsOf(job.status()));
    }
    if (events_.streams() >= kMostStreams) {
      return ErrorResponse(absl::ResourceExhaustedError(absl::StrCat(
                               "more than ", kMostStreams, " streams are open; end some, or poll")),
                           {{"TOO_MANY_STREAMS", {}}});
    }
    HttpResponse response;
    const absl::string_view last = request->Header("last-event-id");
    if (job->over && last == EventHub::EndedId(job->version)) {
      response.status = 204;  // a browser does not connect again after it
      return response;
    }
    response.content_type = "text/event-stream";
    response.headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
    response.stream = std::make_shared<HttpStream>();
    std::function<bool()> admitted;
    if (tokens_) {
      admitted = [this, rpc = match.route->rpc, request] { return admit_(rpc, *request).ok(); };
    }
    events_.Follow(job->id, last, response.stream, std::move(admitted));
    return response;
  }

  void Run(bool slow, std::function<void()> work) {
    (slow ? slow_ : quick_).Add(std::move(work), absl::InfinitePast());  // in the order of arrival
  }

  ControlLoop* const loop_;
  const std::function<CallFigures::Counts()> grpc_figures_;
  const std::function<absl::StatusOr<Caller>(const std::string&, const HttpRequest&)> admit_;
  const bool tls_;
  const bool tokens_;
  // Calls may be answered when the gateway is gone.
  const std::shared_ptr<CallFigures> figures_ = std::make_shared<CallFigures>();
  // Calls may be answered when the gateway is gone, and nobody waits for the answers any more.
  const std::shared_ptr<PublishPool> renders_;
  JsonApi api_;
  EventHub events_;
  std::unique_ptr<HttpServer> server_;
  PublishPool quick_{kQuickThreads};
  PublishPool slow_{kSlowThreads};
};

HttpGateway::HttpGateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpGateway::~HttpGateway() { Stop(); }

absl::StatusOr<std::unique_ptr<HttpGateway>> HttpGateway::Start(const HttpGatewayOptions& options,
                                                                TrainingCalls* calls,
                                                                ControlLoop* loop) {
  auto impl = std::make_unique<Impl>(options, calls, loop);
  RETURN_IF_ERROR(impl->Listen(options));
  return std::unique_ptr<HttpGateway>(new HttpGateway(std::move(impl)));
}

int HttpGateway::port() const { return impl_->port(); }

void HttpGateway::Stop() { impl_->Stop(); }

}  // namespace traind
