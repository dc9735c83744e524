#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "common/base/durable_file.h"
#include "proto/file_service.pb.h"
#include "proto/training_service.pb.h"
#include "proto/worker_service.pb.h"
#include "server/access/roles.h"
#include "server/access/token_book.h"

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
  EXPECT_TRUE(absl::IsUnauthenticated(book.Check(kGetJob, "", false, now)));
  EXPECT_TRUE(absl::IsUnauthenticated(book.Check(kGetJob, "Bearer traind_0", false, now)));
  EXPECT_TRUE(absl::IsUnauthenticated(book.Check(kGetJob, "Bearer ", false, now)));
  EXPECT_EQ(book.Check(kGetJob, viewer, false, now), absl::OkStatus());
  EXPECT_TRUE(absl::IsPermissionDenied(book.Check(kSubmit, viewer, false, now)));
  EXPECT_EQ(book.Check(kSubmit, user, false, now), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnauthenticated(book.Check(kGetJob, viewer, false, now + absl::Hours(1))));
  EXPECT_TRUE(absl::IsPermissionDenied(book.Check("/a.B/C", user, true, now)));
  EXPECT_EQ(book.Check("/grpc.health.v1.Health/Check", "", false, now), absl::OkStatus());
}

TEST(TokenBookTest, AWorkerNeedsItsTokenAndACertificate) {
  const std::string state = StateFolder();
  TokenBook book(state);
  const std::string worker = Bearer(state, "w", Role::kWorker);
  EXPECT_TRUE(absl::IsPermissionDenied(book.Check(kAttach, worker, false, absl::UnixEpoch())));
  EXPECT_EQ(book.Check(kAttach, worker, true, absl::UnixEpoch()), absl::OkStatus());
  EXPECT_TRUE(absl::IsPermissionDenied(book.Check(kGetJob, worker, true, absl::UnixEpoch())));
  const std::string admin = Bearer(state, "a", Role::kAdmin);
  EXPECT_TRUE(absl::IsPermissionDenied(book.Check(kAttach, admin, true, absl::UnixEpoch())));
}

TEST(TokenBookTest, ARevokedTokenIsRefusedWithoutARestart) {
  const std::string state = StateFolder();
  TokenBook book(state);
  const std::string user = Bearer(state, "u", Role::kUser);
  EXPECT_EQ(book.Check(kSubmit, user, false, absl::UnixEpoch()), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(AddToken(state, {"", "u", Role::kUser}).status()));
  EXPECT_EQ(RevokeToken(state, "u"), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnauthenticated(book.Check(kSubmit, user, false, absl::UnixEpoch())));
  EXPECT_TRUE(absl::IsNotFound(RevokeToken(state, "u")));
}

TEST(TokenBookTest, TheFileHoldsHashesOnlyAndADamagedOneOpensNothing) {
  const std::string state = StateFolder();
  TokenBook book(state);
  const std::string user = Bearer(state, "u", Role::kUser);
  const std::string path = absl::StrCat(state, "/", kTokenFile);
  EXPECT_EQ(ReadFile(path)->find(user.substr(user.find('_') + 1)), std::string::npos);
  ASSERT_EQ(WriteFileDurably(path, "nonsense\n"), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(book.Check(kSubmit, user, false, absl::UnixEpoch())));
}

}  // namespace
}  // namespace traind
