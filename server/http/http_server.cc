#include "server/http/http_server.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/base/durable_file.h"
#include "common/base/listen.h"
#include "common/base/log.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/tls_files.h"
#include "server/http/error_json.h"

namespace traind {
namespace {

constexpr size_t kBlockBytes = 16 << 10;       // that a stream sends at once
constexpr size_t kConnectionBytes = 32 << 10;  // for a request's line and headers
// The versions that gRPC allows, too: none before 1.2.
constexpr char kTlsPriorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
constexpr absl::Duration kSweepEvery = absl::Seconds(1);
// A client may send so much beyond the limit: many read no answer before they have sent all.
constexpr size_t kMostIgnoredBytes = 64 << 20;

// Every answer carries them.
constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"X-Frame-Options", "DENY"},
    {"Content-Security-Policy",
     "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
};

absl::Status TooLarge(size_t most) {
  return absl::InvalidArgumentError(absl::StrCat("the body has more than ", most, " bytes"));
}

std::shared_ptr<HttpResponse> Share(HttpResponse response) {
  return std::make_shared<HttpResponse>(std::move(response));
}

}  // namespace

// Both in PEM; empty without TLS.
struct HttpServer::Certificate {
  std::string key, chain;
  bool operator==(const Certificate& other) const {
    return key == other.key && chain == other.chain;
  }
};

// A TCP connection.
struct HttpServer::Connection {
  int socket = -1;
  absl::Duration receive_by;  // on the monotonic clock; infinite while a request is worked on
};

// A request and its answer. The handler may hold it longer than the connection lives.
struct HttpServer::Exchange {
  std::shared_ptr<HttpRequest> request = std::make_shared<HttpRequest>();
  size_t ignored = 0;    // bytes of the body beyond the limit
  bool handled = false;  // the handler was called
  absl::Mutex mutex;
  MHD_Connection* connection ABSL_GUARDED_BY(mutex) = nullptr;  // null: the client is gone
  bool suspended ABSL_GUARDED_BY(mutex) = false;
  std::shared_ptr<HttpResponse> response ABSL_GUARDED_BY(mutex);

  void Answer(HttpResponse answer) ABSL_LOCKS_EXCLUDED(mutex) {
    absl::MutexLock lock(&mutex);
    if (response != nullptr || connection == nullptr) {
      if (answer.file >= 0) close(answer.file);
      if (answer.stream != nullptr) answer.stream->Close();
      return;
    }
    response = Share(std::move(answer));
    if (std::exchange(suspended, false)) MHD_resume_connection(connection);
  }
};

// The functions that libmicrohttpd calls, on its thread.
struct HttpCallbacks {
  using Exchange = HttpServer::Exchange;
  using Connection = HttpServer::Connection;

  static MHD_Result Access(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char*, const char* data, size_t* size,
                           void** state) {
    auto& server = *static_cast<HttpServer*>(self);
    if (*state == nullptr) return Begin(server, connection, url, method, state);
    auto& exchange = *static_cast<std::shared_ptr<Exchange>*>(*state)->get();
    if (*size > 0) {
      std::string& body = exchange.request->body;
      const size_t room = server.options_.most_body_bytes - body.size();
      body.append(data, std::min(room, *size));
      exchange.ignored += *size - std::min(room, *size);
      *size = 0;
      return exchange.ignored > kMostIgnoredBytes ? MHD_NO : MHD_YES;
    }
    if (!std::exchange(exchange.handled, true)) {
      SetReceiveBy(server, connection, absl::InfiniteDuration());
      Handle(server, *static_cast<std::shared_ptr<Exchange>*>(*state));
    }
    absl::MutexLock lock(&exchange.mutex);
    if (exchange.response != nullptr) return Queue(connection, exchange);
    exchange.suspended = true;
    MHD_suspend_connection(connection);
    return MHD_YES;
  }

  static std::string PeerOf(MHD_Connection* connection) {
    const auto* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info == nullptr || info->client_addr == nullptr) return "";
    char text[INET6_ADDRSTRLEN] = "";
    if (info->client_addr->sa_family == AF_INET6) {
      const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(info->client_addr);
      inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
      return absl::StrCat("ipv6:[", text, "]:", ntohs(v6->sin6_port));
    }
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(info->client_addr);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", ntohs(v4->sin_port));
  }

  static MHD_Result Begin(HttpServer& server, MHD_Connection* connection, const char* url,
                          const char* method, void** state) {
    auto exchange = std::make_shared<Exchange>();
    HttpRequest& request = *exchange->request;
    request.method = method;
    request.path = url;
    request.peer = PeerOf(connection);
    MHD_get_connection_values(connection, MHD_HEADER_KIND, AddHeader, &request);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, AddQuery, &request);
    std::shared_ptr<HttpResponse> refusal = server.Refusal(request);
    *state = new std::shared_ptr<Exchange>(exchange);
    absl::MutexLock server_lock(&server.mutex_);
    absl::MutexLock lock(&exchange->mutex);
    exchange->connection = connection;
    if (server.stopping_) {
      refusal = Share(ErrorResponse(absl::UnavailableError("traind is stopping"), {}));
    }
    server.exchanges_[exchange.get()] = exchange;
    if (refusal == nullptr) return MHD_YES;
    // Answered before the body is read; the connection closes then.
    exchange->handled = true;
    refusal->headers.emplace_back("Connection", "close");
    exchange->response = std::move(refusal);
    return Queue(connection, *exchange);
  }

  static void Handle(HttpServer& server, const std::shared_ptr<Exchange>& exchange) {
    if (exchange->ignored > 0) {
      const size_t most = server.options_.most_body_bytes;
      return exchange->Answer(
          ErrorResponse(TooLarge(most), {{"BODY_TOO_LARGE", {}}}, MHD_HTTP_CONTENT_TOO_LARGE));
    }
    server.handler_(exchange->request,
                    [exchange](HttpResponse response) { exchange->Answer(std::move(response)); });
  }

  static MHD_Result Queue(MHD_Connection* connection, Exchange& exchange)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(exchange.mutex) {
    HttpResponse& answer = *exchange.response;
    MHD_Response* const response = Make(connection, exchange);
    if (response == nullptr) return MHD_NO;
    for (const auto& [name, value] : kHeaders) MHD_add_response_header(response, name, value);
    if (!answer.content_type.empty()) {
      MHD_add_response_header(response, "Content-Type", answer.content_type.c_str());
    }
    for (const auto& [name, value] : answer.headers) {
      MHD_add_response_header(response, name.c_str(), value.c_str());
    }
    const MHD_Result queued =
        MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
    MHD_destroy_response(response);
    return queued;
  }

  static MHD_Response* Make(MHD_Connection* connection, Exchange& exchange)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(exchange.mutex) {
    HttpResponse& answer = *exchange.response;
    if (answer.stream != nullptr) {
      answer.stream->Attach([connection] { MHD_suspend_connection(connection); },
                            [connection] { MHD_resume_connection(connection); });
      return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlockBytes, ReadStream,
                                               new std::shared_ptr<HttpStream>(answer.stream),
                                               CloseStream);
    }
    if (answer.file >= 0) {
      return MHD_create_response_from_fd64(static_cast<uint64_t>(answer.file_bytes),
                                           std::exchange(answer.file, -1));
    }
    static const auto* const nothing = new std::shared_ptr<const std::string>(new std::string());
    const auto& body = answer.body == nullptr ? *nothing : answer.body;
    return MHD_create_response_from_buffer_with_free_callback_cls(
        body->size(), const_cast<char*>(body->data()),
        [](void* kept) { delete static_cast<std::shared_ptr<const std::string>*>(kept); },
        new std::shared_ptr<const std::string>(body));
  }

  static ssize_t ReadStream(void* stream, uint64_t, char* to, size_t most) {
    const int64_t read = (*static_cast<std::shared_ptr<HttpStream>*>(stream))->Read(to, most);
    return read < 0 ? MHD_CONTENT_READER_END_OF_STREAM : read;
  }

  static void CloseStream(void* stream) {
    auto* const kept = static_cast<std::shared_ptr<HttpStream>*>(stream);
    (*kept)->Close();
    delete kept;
  }

  static MHD_Result AddHeader(void* to, MHD_ValueKind, const char* name, const char* value) {
    auto& headers = static_cast<HttpRequest*>(to)->headers;
    headers[absl::AsciiStrToLower(name)] = value == nullptr ? "" : value;
    return MHD_YES;
  }

  static MHD_Result AddQuery(void* to, MHD_ValueKind, const char* name, const char* value) {
    static_cast<HttpRequest*>(to)->query.emplace_back(name, value == nullptr ? "" : value);
    return MHD_YES;
  }

  static void Completed(void* self, MHD_Connection* connection, void** state,
                        MHD_RequestTerminationCode) {
    auto& server = *static_cast<HttpServer*>(self);
    SetReceiveBy(server, connection, SystemClock().MonotonicNow() + server.options_.receive_within);
    auto* const kept = static_cast<std::shared_ptr<Exchange>*>(*state);
    if (kept == nullptr) return;
    *state = nullptr;
    {
      absl::MutexLock server_lock(&server.mutex_);
      server.exchanges_.erase(kept->get());
    }
    {
      absl::MutexLock lock(&(*kept)->mutex);
      (*kept)->connection = nullptr;
    }
    delete kept;
  }

  static void Connected(void* self, MHD_Connection* connection, void** context,
                        MHD_ConnectionNotificationCode what) {
    auto& server = *static_cast<HttpServer*>(self);
    absl::MutexLock lock(&server.mutex_);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      server.connections_.erase(static_cast<Connection*>(*context));
      return;
    }
    auto made = std::make_unique<Connection>();
    made->socket =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    made->receive_by = SystemClock().MonotonicNow() + server.options_.receive_within;
    if (IsReservedDescriptor(made->socket)) shutdown(made->socket, SHUT_RDWR);
    *context = made.get();
    server.connections_[made.get()] = std::move(made);
  }

  static void SetReceiveBy(HttpServer& server, MHD_Connection* connection, absl::Duration at) {
    const auto* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    absl::MutexLock lock(&server.mutex_);
    static_cast<Connection*>(info->socket_context)->receive_by = at;
  }
};

std::shared_ptr<HttpResponse> HttpServer::Refusal(const HttpRequest& request) const {
  const absl::string_view host = request.Header("host");
  if (!guard_.AllowsHost(host)) {
    return Share(ErrorResponse(
        absl::PermissionDeniedError(absl::StrCat("this traind is not called '", host,
                                                 "'; --http-host allows a further name")),
        {{"BAD_HOST", {{"host", std::string(host)}}}}));
  }
  if (ChangesState(request.method) && !Guard::AllowsOrigin(request)) {
    return Share(ErrorResponse(
        absl::PermissionDeniedError("a page of another site may not change anything here"),
        {{"BAD_ORIGIN", {{"origin", std::string(request.Header("origin"))}}}}));
  }
  size_t length = 0;
  if (absl::SimpleAtoi(request.Header("content-length"), &length) &&
      length > options_.most_body_bytes + kMostIgnoredBytes) {
    return Share(ErrorResponse(TooLarge(options_.most_body_bytes), {{"BODY_TOO_LARGE", {}}},
                               MHD_HTTP_CONTENT_TOO_LARGE));
  }
  return nullptr;
}

HttpServer::HttpServer(HttpServerOptions options, Guard guard, Handler handler)
    : options_(std::move(options)), guard_(std::move(guard)), handler_(std::move(handler)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const HttpServerOptions& options,
                                                               Handler handler) {
  const size_t colon = options.address.rfind(':');
  const std::string host = options.address.substr(0, colon);
  std::unique_ptr<HttpServer> server(
      new HttpServer(options, Guard(host, options.names), std::move(handler)));
  const absl::StatusOr<Listener> listener = ListenOn(options.address);
  if (absl::IsInvalidArgument(listener.status())) {
    return absl::InvalidArgumentError(absl::StrCat("--http ", listener.status().message()));
  }
  RETURN_IF_ERROR(listener.status());
  server->port_ = listener->port;
  auto close_listener = absl::MakeCleanup([fd = listener->fd] { close(fd); });
  ASSIGN_OR_RETURN(Certificate certificate, server->ReadCertificate());
  std::move(close_listener).Cancel();
  ASSIGN_OR_RETURN(server->daemon_, server->StartDaemon(listener->fd, certificate));
  server->certificate_ = std::make_unique<Certificate>(std::move(certificate));
  server->sweeper_ = std::thread([raw = server.get()] { raw->Sweep(); });
  return server;
}

absl::StatusOr<HttpServer::Certificate> HttpServer::ReadCertificate() const {
  Certificate certificate;
  if (options_.tls_dir.empty()) return certificate;
  ASSIGN_OR_RETURN(certificate.key,
                   ReadSecretFile(absl::StrCat(options_.tls_dir, "/", kTlsServerKey)));
  ASSIGN_OR_RETURN(certificate.chain, ReadFile(absl::StrCat(options_.tls_dir, "/", kTlsServer)));
  return certificate;
}

absl::StatusOr<MHD_Daemon*> HttpServer::StartDaemon(int listener, Certificate certificate) const {
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
  std::vector<MHD_OptionItem> tls;
  if (!options_.tls_dir.empty()) {
    flags |= MHD_USE_TLS;
    tls = {{MHD_OPTION_HTTPS_MEM_KEY, 0, certificate.key.data()},
           {MHD_OPTION_HTTPS_MEM_CERT, 0, certificate.chain.data()},
           {MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kTlsPriorities)}};
  }
  tls.push_back({MHD_OPTION_END, 0, nullptr});
  void* const self = const_cast<HttpServer*>(this);
  MHD_Daemon* const daemon = MHD_start_daemon(
      flags, 0, nullptr, nullptr, HttpCallbacks::Access, self, MHD_OPTION_LISTEN_SOCKET, listener,
      MHD_OPTION_CONNECTION_LIMIT, options_.most_connections, MHD_OPTION_CONNECTION_TIMEOUT,
      static_cast<unsigned>(absl::ToInt64Seconds(options_.send_stall)),
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_NOTIFY_COMPLETED,
      HttpCallbacks::Completed, self, MHD_OPTION_NOTIFY_CONNECTION, HttpCallbacks::Connected, self,
      MHD_OPTION_ARRAY, tls.data(), MHD_OPTION_END);
  if (daemon != nullptr) return daemon;
  close(listener);
  return absl::UnavailableError(absl::StrCat("cannot serve HTTP", tls.size() > 1 ? " over TLS" : "",
                                             " on ", options_.address, ": ",
                                             ErrnoStatus(errno, "").message()));
}

void HttpServer::RenewCertificate() {
  for (auto it = former_.begin(); it != former_.end();) {
    const auto* const open = MHD_get_daemon_info(*it, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    if (open != nullptr && open->num_connections == 0) {
      MHD_stop_daemon(*it);
      it = former_.erase(it);
    } else {
      ++it;
    }
  }
  auto found = ReadCertificate();
  if (found.ok() && *found == *certificate_) return;
  absl::Status renewed = found.status();
  if (found.ok()) {
    const auto* const info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_LISTEN_FD);
    const int listener = fcntl(info->listen_fd, F_DUPFD_CLOEXEC, 0);
    auto next = StartDaemon(listener, *found);
    renewed = next.status();
    if (next.ok()) {
      close(MHD_quiesce_daemon(daemon_));
      former_.push_back(std::exchange(daemon_, *next));
      *certificate_ = *std::move(found);
      told_.clear();
      TRAIND_LOG(INFO) << "new connections to " << options_.address << " get another certificate";
      return;
    }
  }
  // An exchange of two files is not one step: tried again, and told once.
  if (std::exchange(told_, std::string(renewed.message())) != told_) {
    TRAIND_LOG(WARNING) << "the certificate of " << options_.address
                        << " stays as it was: " << told_;
  }
}

HttpServer::~HttpServer() { Stop(); }

int HttpServer::connections() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(connections_.size());
}

void HttpServer::CloseSlowOnes() {
  const absl::Duration now = SystemClock().MonotonicNow();
  for (auto& [key, connection] : connections_) {
    if (connection->receive_by > now) continue;
    shutdown(connection->socket, SHUT_RDWR);
  }
}

void HttpServer::Sweep() {
  absl::Duration reread_at = SystemClock().MonotonicNow() + options_.reread_tls;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto stopping = [this] {
        mutex_.AssertReaderHeld();
        return stopping_;
      };
      if (stopped_.Await(mutex_, kSweepEvery, stopping)) return;
      CloseSlowOnes();
    }
    if (options_.tls_dir.empty() || SystemClock().MonotonicNow() < reread_at) continue;
    RenewCertificate();
    reread_at = SystemClock().MonotonicNow() + options_.reread_tls;
  }
}

void HttpServer::Stop() {
  if (daemon_ == nullptr) return;
  std::vector<std::shared_ptr<Exchange>> open;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (const auto& [key, exchange] : exchanges_) open.push_back(exchange);
  }
  stopped_.NotifyAll();
  if (sweeper_.joinable()) sweeper_.join();
  for (const auto& exchange : open) {
    exchange->Answer(ErrorResponse(absl::UnavailableError("traind is stopping"), {}));
    std::shared_ptr<HttpResponse> response;
    {
      absl::MutexLock lock(&exchange->mutex);
      response = exchange->response;
    }
    if (response != nullptr && response->stream != nullptr) response->stream->End();
  }
  for (MHD_Daemon* const former : former_) MHD_stop_daemon(former);
  former_.clear();
  MHD_stop_daemon(daemon_);
  daemon_ = nullptr;
}

}  // namespace traind
