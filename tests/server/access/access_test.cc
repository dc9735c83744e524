#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "proto/file_service.pb.h"
#include "proto/training_service.pb.h"
#include "proto/worker_service.pb.h"
#include "server/access/audit_chain.h"
#include "server/access/gate.h"
#include "server/access/local_users.h"
#include "server/access/roles.h"
#include "server/access/token_book.h"
#include "server/access/worker_owners.h"

namespace traind {
namespace {

constexpr char kGetJob[] = "/traind.v1.TrainingService/GetJob";
constexpr char kSubmit[] = "/traind.v1.TrainingService/Submit";
constexpr char kAttach[] = "/traind.v1.WorkerService/Attach";

std::string StateFolder() {
  std::string folder = absl::StrCat(testing::TempDir(), "/access.XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

std::string Bearer(const std::string& state, const std::string& name, Role role,
                   absl::Time expires = absl::InfiniteFuture()) {
  return absl::StrCat("Bearer ", AddToken(state, {"", name, role, expires}).value());
}

TEST(RolesTest, EveryMethodOfEveryServiceHasARole) {
  for (const google::protobuf::FileDescriptor* file :
       {v1::SubmitRequest::descriptor()->file(), v1::Hello::descriptor()->file(),
        v1::FilePart::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const google::protobuf::ServiceDescriptor* service = file->service(s);
      for (int m = 0; m < service->method_count(); ++m) {
        const std::string method =
            absl::StrCat("/", service->full_name(), "/", service->method(m)->name());
        const auto need = NeedOf(method);
        ASSERT_TRUE(need.has_value()) << method << " has no entry in the table of roles";
        EXPECT_FALSE(need->open) << method;
      }
    }
  }
}

TEST(RolesTest, AWorkerIsNoClientAndNoClientIsAWorker) {
  EXPECT_TRUE(Satisfies(Role::kAdmin, Role::kUser));
  EXPECT_TRUE(Satisfies(Role::kUser, Role::kViewer));
  EXPECT_FALSE(Satisfies(Role::kViewer, Role::kUser));
  EXPECT_FALSE(Satisfies(Role::kUser, Role::kAdmin));
  EXPECT_FALSE(Satisfies(Role::kAdmin, Role::kWorker));
  EXPECT_FALSE(Satisfies(Role::kWorker, Role::kViewer));
}

TEST(TokenBookTest, CallsAreDecidedByTokenRoleAndExpiry) {
  const std::string state = StateFolder();
  TokenBook book(state);
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1000);
  const std::string viewer = Bearer(state, "v", Role::kViewer, now + absl::Hours(1));
  const std::string user = Bearer(state, "u", Role::kUser);
  EXPECT_TRUE(absl::IsUnauthenticated(book.Check(kGetJob, "", false, now).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(book.Check(kGetJob, "Bearer traind_0", false, now).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(book.Check(kGetJob, "Bearer ", false, now).status()));
  EXPECT_EQ(book.Check(kGetJob, viewer, false, now).status(), absl::OkStatus());
  EXPECT_TRUE(absl::IsPermissionDenied(book.Check(kSubmit, viewer, false, now).status()));
  EXPECT_EQ(book.Check(kSubmit, user, false, now).status(), absl::OkStatus());
  EXPECT_TRUE(
      absl::IsUnauthenticated(book.Check(kGetJob, viewer, false, now + absl::Hours(1)).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(book.Check("/a.B/C", user, true, now).status()));
  EXPECT_EQ(book.Check("/grpc.health.v1.Health/Check", "", false, now).status(), absl::OkStatus());
}

TEST(TokenBookTest, AWorkerNeedsItsTokenAndACertificate) {
  const std::string state = StateFolder();
  TokenBook book(state);
  const std::string worker = Bearer(state, "w", Role::kWorker);
  EXPECT_TRUE(
      absl::IsPermissionDenied(book.Check(kAttach, worker, false, absl::UnixEpoch()).status()));
  EXPECT_EQ(book.Check(kAttach, worker, true, absl::UnixEpoch()).status(), absl::OkStatus());
  EXPECT_TRUE(
      absl::IsPermissionDenied(book.Check(kGetJob, worker, true, absl::UnixEpoch()).status()));
  const std::string admin = Bearer(state, "a", Role::kAdmin);
  EXPECT_TRUE(
      absl::IsPermissionDenied(book.Check(kAttach, admin, true, absl::UnixEpoch()).status()));
}

TEST(TokenBookTest, ARevokedTokenIsRefusedWithoutARestart) {
  const std::string state = StateFolder();
  TokenBook book(state);
  const std::string user = Bearer(state, "u", Role::kUser);
  EXPECT_EQ(book.Check(kSubmit, user, false, absl::UnixEpoch()).status(), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(AddToken(state, {"", "u", Role::kUser}).status()));
  EXPECT_EQ(RevokeToken(state, "u"), absl::OkStatus());
  EXPECT_TRUE(
      absl::IsUnauthenticated(book.Check(kSubmit, user, false, absl::UnixEpoch()).status()));
  EXPECT_TRUE(absl::IsNotFound(RevokeToken(state, "u")));
}

TEST(TokenBookTest, TheFileHoldsHashesOnlyAndADamagedOneOpensNothing) {
  const std::string state = StateFolder();
  TokenBook book(state);
  const std::string user = Bearer(state, "u", Role::kUser);
  const std::string path = absl::StrCat(state, "/", kTokenFile);
  EXPECT_EQ(ReadFile(path)->find(user.substr(user.find('_') + 1)), std::string::npos);
  ASSERT_EQ(WriteFileDurably(path, "nonsense\n"), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(book.Check(kSubmit, user, false, absl::UnixEpoch()).status()));
}

std::vector<std::string> LinesOf(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, '\n', absl::SkipEmpty());
}

TEST(GateTest, ChangesAndRefusalsAreRecordedButReadsAreNot) {
  const std::string state = StateFolder();
  Gate gate(state);
  const std::string user = Bearer(state, "u", Role::kUser);
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  const auto caller = gate.Admit(kSubmit, user, false, now);
  ASSERT_EQ(caller.status(), absl::OkStatus());
  EXPECT_EQ(caller->name, "u");
  gate.Record(*caller, "Submit", "j-1", absl::OkStatus(), now);
  gate.Record(*caller, "GetJob", "j-1", absl::OkStatus(), now);
  EXPECT_FALSE(gate.Admit(kSubmit, "Bearer wrong", false, now).ok());
  const auto lines = LinesOf(absl::StrCat(state, "/", kAuditFile));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find(R"("caller":"u","role":"user","method":"Submit","subject":"j-1")"),
            std::string::npos);
  EXPECT_NE(lines[1].find(R"("caller":"","role":"","method":"Submit","subject":"","code":"UNAU)"),
            std::string::npos);
}

TEST(GateTest, AFloodOfRefusalsLeavesRoomForTheRest) {
  const std::string state = StateFolder();
  Gate gate(state);
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  for (int i = 0; i < 2 * Gate::kMostRefusals; ++i) {
    EXPECT_FALSE(gate.Admit(kSubmit, "", false, now).ok());
  }
  const std::string path = absl::StrCat(state, "/", kAuditFile);
  EXPECT_EQ(LinesOf(path).size(), static_cast<size_t>(Gate::kMostRefusals));
  EXPECT_FALSE(gate.Admit(kSubmit, "", false, now + absl::Minutes(1)).ok());
  EXPECT_NE(LinesOf(path).back().find("(100 refusals before it are not recorded)"),
            std::string::npos);
}

TEST(WorkerOwnersTest, AWorkersIdStaysWithItsTokenUntilThatIsRevoked) {
  const std::string state = StateFolder();
  TokenBook book(state);
  Bearer(state, "w1", Role::kWorker);
  Bearer(state, "w2", Role::kWorker);
  const auto knows = [&](const std::string& name) { return book.Knows(name); };
  {
    WorkerOwners owners(state, knows);
    EXPECT_EQ(owners.Claim("host-a", "w1"), absl::OkStatus());
    EXPECT_EQ(owners.Claim("host-b", "w1"), absl::OkStatus());
    EXPECT_TRUE(absl::IsPermissionDenied(owners.Claim("host-a", "w2")));
    EXPECT_TRUE(absl::IsPermissionDenied(owners.Claim("host-a\nw2 host-c", "w2")));
  }
  WorkerOwners after_a_restart(state, knows);
  EXPECT_TRUE(absl::IsPermissionDenied(after_a_restart.Claim("host-a", "w2")));
  EXPECT_EQ(after_a_restart.Claim("host-a", "w1"), absl::OkStatus());
  ASSERT_EQ(RevokeToken(state, "w1"), absl::OkStatus());
  EXPECT_EQ(after_a_restart.Claim("host-a", "w2"), absl::OkStatus());
}

// A connection within this machine, whose client belongs to `user`.
class LocalConnection {
 public:
  explicit LocalConnection(uid_t user) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener, 8), 0);
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    const uid_t own = geteuid();
    EXPECT_EQ(seteuid(user), 0);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(seteuid(own), 0);
    EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), size), 0);
    getsockname(client, reinterpret_cast<sockaddr*>(&address), &size);
    peer_ = absl::StrCat("ipv4:127.0.0.1:", ntohs(address.sin_port));
    sockets_ = {listener, client};
  }
  ~LocalConnection() {
    for (const int one : sockets_) close(one);
  }
  int port() const { return port_; }
  const std::string& peer() const { return peer_; }

 private:
  int port_ = 0;
  std::string peer_;
  std::vector<int> sockets_;
};

TEST(LocalUsersTest, TheOwnUserMayCallAndAMadeUpConnectionMayNot) {
  const LocalConnection connection(geteuid());
  LocalUsers users("127.0.0.1");
  EXPECT_TRUE(absl::IsUnavailable(users.Check(connection.peer())));
  users.ListenAt(connection.port());
  EXPECT_EQ(users.Check(connection.peer()), absl::OkStatus());
  EXPECT_TRUE(absl::IsPermissionDenied(users.Check("ipv4:127.0.0.1:1")));
  EXPECT_TRUE(absl::IsPermissionDenied(users.Check("ipv4:10.0.0.1:80")));
  EXPECT_TRUE(absl::IsPermissionDenied(users.Check("unix:")));
}

TEST(LocalUsersTest, AnotherUserMayNot) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to have a socket of another user";
  const LocalConnection connection(65534);
  LocalUsers users("localhost");
  users.ListenAt(connection.port());
  const absl::Status refused = users.Check(connection.peer());
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_NE(refused.message().find("--local-users any"), absl::string_view::npos);
}

}  // namespace
}  // namespace traind
