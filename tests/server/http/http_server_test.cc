#include "server/http/http_server.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace traind {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// A TCP connection to the server.
class Client {
 public:
  explicit Client(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    const timeval patience{10, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Client() { close(socket_); }

  void Send(const std::string& text) {
    EXPECT_EQ(send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Reads until the text has come, or the server closes; what has come.
  std::string ReadUntil(const std::string& text) {
    while (!absl::StrContains(read_, text)) {
      char part[4096];
      const ssize_t got = recv(socket_, part, sizeof part, 0);
      if (got <= 0) break;
      read_.append(part, static_cast<size_t>(got));
    }
    return read_;
  }
  std::string ReadToTheEnd() { return ReadUntil("no such text can come"); }

 private:
  int socket_;
  std::string read_;
};

HttpResponse Text(const std::string& text) {
  HttpResponse response;
  response.content_type = "text/plain";
  response.body = std::make_shared<const std::string>(text);
  return response;
}

std::string Get(const std::string& path, const std::string& more = "Connection: close\r\n") {
  return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", more, "\r\n");
}

class HttpServerTest : public testing::Test {
 protected:
  void Listen(HttpServer::Handler handler) {
    options_.address = "127.0.0.1:0";
    auto server = HttpServer::Listen(options_, std::move(handler));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string Answer(const std::string& request) {
    Client client(server_->port());
    client.Send(request);
    return client.ReadToTheEnd();
  }

  HttpServerOptions options_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, TheHandlerGetsTheRequestAndItsAnswerIsSent) {
  Listen([](std::shared_ptr<const HttpRequest> request, Respond respond) {
    std::string text = absl::StrCat(request->method, " ", request->path, " ", request->body);
    for (const auto& [key, value] : request->query) absl::StrAppend(&text, " ", key, "=", value);
    respond(Text(text + std::string(request->Header("x-a"))));
  });
  const std::string answer = Answer(
      "POST /a%20b?q=1%262&r HTTP/1.1\r\nHost: localhost\r\nX-A: !\r\nContent-Length: 4\r\n"
      "Connection: close\r\n\r\nbody");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, EndsWith("POST /a b body q=1&2 r=!"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'self';"));
}

TEST_F(HttpServerTest, AnAnswerMayComeLaterFromAnotherThread) {
  std::thread later;
  Listen([&](std::shared_ptr<const HttpRequest>, Respond respond) {
    later = std::thread([respond] {
      absl::SleepFor(absl::Milliseconds(50));
      respond(Text("later"));
    });
  });
  EXPECT_THAT(Answer(Get("/")), EndsWith("later"));
  later.join();
}

TEST_F(HttpServerTest, AClientThatLeavesBeforeTheAnswerHarmsNothing) {
  absl::Mutex mutex;
  std::vector<Respond> open;
  Listen([&](std::shared_ptr<const HttpRequest> request, Respond respond) {
    if (request->path == "/fast") return respond(Text("fast"));
    absl::MutexLock lock(&mutex);
    open.push_back(std::move(respond));
  });
  {
    Client client(server_->port());
    client.Send(Get("/slow"));
    absl::MutexLock lock(&mutex);
    const auto came = [&] { return !open.empty(); };
    ASSERT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&came), absl::Seconds(10)));
  }
  EXPECT_THAT(Answer(Get("/fast")), EndsWith("fast"));
  absl::MutexLock lock(&mutex);
  open[0](Text("nobody reads this"));
}

TEST_F(HttpServerTest, ABodyBeyondTheLimitIsRefused) {
  options_.most_body_bytes = 100;
  Listen([](std::shared_ptr<const HttpRequest>, Respond respond) { respond(Text("taken")); });
  EXPECT_THAT(Answer(absl::StrCat("POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                  "Content-Length: 101\r\n\r\n",
                                  std::string(101, 'x'))),
              StartsWith("HTTP/1.1 413"));
  // So much is refused before it is read.
  EXPECT_THAT(Answer("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  const std::string part = absl::StrCat("50\r\n", std::string(0x50, 'x'), "\r\n");
  EXPECT_THAT(Answer(absl::StrCat("POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n",
                                  part, part, "0\r\n\r\n")),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Answer(absl::StrCat("POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n",
                                  part, "0\r\n\r\n")),
              EndsWith("taken"));
}

TEST_F(HttpServerTest, HeadersBeyondTheLimitAreRefused) {
  Listen([](std::shared_ptr<const HttpRequest>, Respond respond) { respond(Text("taken")); });
  const std::string answer =
      Answer(Get("/", absl::StrCat("X-Long: ", std::string(100000, 'x'), "\r\n")));
  EXPECT_THAT(answer, testing::Not(HasSubstr("taken")));
}

TEST_F(HttpServerTest, ARequestThatComesTooSlowlyIsCutOffAndOthersAreAnswered) {
  options_.receive_within = absl::Milliseconds(300);
  Listen([](std::shared_ptr<const HttpRequest>, Respond respond) { respond(Text("answer")); });
  Client slow(server_->port());
  const absl::Time begin = absl::Now();
  std::thread sender([&] {
    // A byte now and then: the connection is never idle for long.
    const std::string request = Get("/");
    for (size_t i = 0; i < 10; ++i) {
      slow.Send(request.substr(i, 1));
      absl::SleepFor(absl::Milliseconds(50));
    }
  });
  EXPECT_THAT(Answer(Get("/")), EndsWith("answer"));
  sender.join();
  EXPECT_EQ(slow.ReadToTheEnd(), "");
  EXPECT_LT(absl::Now() - begin, absl::Seconds(8));
}

TEST_F(HttpServerTest, AStreamSendsWhatIsPushedAndEnds) {
  const auto stream = std::make_shared<HttpStream>();
  Listen([&](std::shared_ptr<const HttpRequest>, Respond respond) {
    HttpResponse response;
    response.content_type = "text/event-stream";
    response.stream = stream;
    respond(std::move(response));
  });
  Client client(server_->port());
  client.Send(Get("/"));
  client.ReadUntil("\r\n\r\n");
  stream->Push(std::make_shared<const std::string>("first"));
  EXPECT_THAT(client.ReadUntil("first"), HasSubstr("first"));
  stream->Push(std::make_shared<const std::string>(std::string(100000, 'x')));
  stream->Push(std::make_shared<const std::string>("last"));
  stream->End();
  EXPECT_THAT(client.ReadToTheEnd(), HasSubstr("last"));
}

TEST_F(HttpServerTest, AReaderWhoIsSlowMissesOlderParts) {
  HttpStream stream;
  stream.Attach([] {}, [] {});
  for (int i = 0; i < 100; ++i) {
    stream.Push(std::make_shared<const std::string>(absl::StrCat(i, ";")));
  }
  stream.End();
  std::string read;
  char part[64];
  for (int64_t got = 0; (got = stream.Read(part, sizeof part)) > 0;) {
    read.append(part, static_cast<size_t>(got));
  }
  EXPECT_THAT(read, EndsWith("98;99;"));
  EXPECT_LT(read.size(), 40u);
}

TEST_F(HttpServerTest, StopAnswersWhatIsOpenAndEndsStreams) {
  const auto stream = std::make_shared<HttpStream>();
  Respond kept;
  Listen([&](std::shared_ptr<const HttpRequest> request, Respond respond) {
    if (request->path == "/never") {
      kept = std::move(respond);
      return;
    }
    HttpResponse response;
    response.stream = stream;
    respond(std::move(response));
  });
  Client never(server_->port()), follower(server_->port());
  follower.Send(Get("/stream"));
  follower.ReadUntil("\r\n\r\n");
  never.Send(Get("/never"));
  while (server_->connections() < 2) absl::SleepFor(absl::Milliseconds(5));
  absl::SleepFor(absl::Milliseconds(50));
  server_->Stop();
  EXPECT_THAT(never.ReadToTheEnd(), testing::AnyOf(StartsWith("HTTP/1.1 503"), ""));
  follower.ReadToTheEnd();
  EXPECT_TRUE(stream->closed());
}

TEST_F(HttpServerTest, OtherHostsAndOriginsAreRefused) {
  Listen([](std::shared_ptr<const HttpRequest>, Respond respond) { respond(Text("done")); });
  EXPECT_THAT(Answer("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Answer("POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
                     "Content-Length: 2\r\n\r\n{}"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Answer("POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
                     "Content-Length: 2\r\nConnection: close\r\n\r\n{}"),
              EndsWith("done"));
}

TEST_F(HttpServerTest, ATakenPortIsUnavailable) {
  Listen([](std::shared_ptr<const HttpRequest>, Respond respond) { respond(Text("")); });
  HttpServerOptions same;
  same.address = absl::StrCat("127.0.0.1:", server_->port());
  EXPECT_TRUE(absl::IsUnavailable(
      HttpServer::Listen(same, [](std::shared_ptr<const HttpRequest>, Respond) {}).status()));
}

}  // namespace
}  // namespace traind
