#include "server/access_commands.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/time.h>
#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/duration.h"
#include "common/base/run_program.h"
#include "common/base/status_macros.h"
#include "common/base/tls_files.h"
#include "server/access/token_book.h"
#include "server/config.h"
#include "server/standalone.h"

namespace traind {
namespace {

constexpr char kTokenLock[] = "tokens.lock";
constexpr absl::Duration kOpensslPatience = absl::Seconds(60);
constexpr size_t kMostOutput = 1 << 20;
constexpr char kDays[] = "3650";

int Fail(const absl::Status& status) {
  std::cerr << "traind: error: " << status.message() << "\n";
  return kExitError;
}

std::string Stamp(absl::Time time) {
  return time == absl::InfiniteFuture()
             ? "never"
             : absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

struct TokenFlags {
  std::string state, name, role, expires = "never", out;
};

absl::Status Add(const TokenFlags& flags) {
  if (access(flags.out.c_str(), F_OK) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(flags.out, " exists; name another --out"));
  }
  TokenEntry entry;
  entry.name = flags.name;
  entry.role = *RoleFromName(flags.role);
  if (flags.expires != "never") {
    const auto life = DurationFromText(flags.expires);
    if (!life.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--expires ", life.status().message()));
    }
    entry.expires = SystemClock().WallNow() + *life;
  }
  ASSIGN_OR_RETURN(const std::string token, AddToken(flags.state, entry));
  return WriteFileDurably(flags.out, token + "\n");
}

absl::Status List(const TokenFlags& flags) {
  ASSIGN_OR_RETURN(const std::vector<TokenEntry> tokens, ReadTokens(flags.state));
  for (const TokenEntry& token : tokens) {
    std::cout << token.name << "  " << RoleName(token.role) << "  expires " << Stamp(token.expires)
              << "\n";
  }
  return absl::OkStatus();
}

// One change of the file at a time.
absl::Status Change(const TokenFlags& flags, bool add) {
  RETURN_IF_ERROR(MakeDirs(flags.state));
  ASSIGN_OR_RETURN(const FileLock lock,
                   FileLock::Acquire(absl::StrCat(flags.state, "/", kTokenLock)));
  return add ? Add(flags) : RevokeToken(flags.state, flags.name);
}

// Runs openssl in a folder.
absl::Status Openssl(const std::vector<std::string>& arguments) {
  std::vector<std::string> line = {"/usr/bin/openssl"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  const auto run = RunProgram(line, kOpensslPatience, kMostOutput);
  if (absl::IsNotFound(run.status())) {
    return absl::NotFoundError("init-tls needs /usr/bin/openssl; install the package openssl");
  }
  RETURN_IF_ERROR(run.status());
  if (run->ended == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("failed: ", absl::StrJoin(line, " ")));
}

// "IP:10.0.0.1" or "DNS:gpu01".
std::string AlternativeName(const std::string& host) {
  in6_addr address;
  const bool ip = inet_pton(AF_INET, host.c_str(), &address) == 1 ||
                  inet_pton(AF_INET6, host.c_str(), &address) == 1;
  return absl::StrCat(ip ? "IP:" : "DNS:", host);
}

absl::Status MakeKey(const std::string& path) {
  return Openssl(
      {"genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path});
}

// A certificate that the CA of the folder signs.
absl::Status MakeSigned(const std::string& dir, const char* name, const char* key_name,
                        const std::string& subject, const std::string& extensions) {
  const auto path = [&](const std::string& file) { return absl::StrCat(dir, "/", file); };
  const std::string request = path("request.tmp"), config = path("extensions.tmp");
  RETURN_IF_ERROR(MakeKey(path(key_name)));
  RETURN_IF_ERROR(WriteFileDurably(config, extensions));
  RETURN_IF_ERROR(
      Openssl({"req", "-new", "-key", path(key_name), "-subj", subject, "-out", request}));
  RETURN_IF_ERROR(Openssl({"x509", "-req", "-in", request, "-CA", path(kTlsCa), "-CAkey",
                           path(kTlsCaKey), "-CAcreateserial", "-CAserial", path("ca.srl"), "-days",
                           kDays, "-sha256", "-extfile", config, "-out", path(name)}));
  unlink(request.c_str());
  unlink(config.c_str());
  return absl::OkStatus();
}

absl::Status InitTls(const std::string& dir, std::vector<std::string> hosts) {
  RETURN_IF_ERROR(MakeDirs(dir));
  const auto path = [&](const char* file) { return absl::StrCat(dir, "/", file); };
  if (access(path(kTlsCa).c_str(), F_OK) == 0) {
    return absl::AlreadyExistsError(
        absl::StrCat(path(kTlsCa),
                     " exists; a new CA would lock everybody out: name an empty "
                     "folder"));
  }
  umask(077);  // private keys are for this user only
  RETURN_IF_ERROR(MakeKey(path(kTlsCaKey)));
  RETURN_IF_ERROR(Openssl({"req", "-x509", "-new", "-key", path(kTlsCaKey), "-subj",
                           "/CN=traind CA", "-days", kDays, "-sha256", "-out", path(kTlsCa)}));
  hosts.insert(hosts.end(), {"localhost", "127.0.0.1", "::1"});
  std::vector<std::string> names;
  for (const std::string& host : hosts) names.push_back(AlternativeName(host));
  RETURN_IF_ERROR(MakeSigned(dir, kTlsServer, kTlsServerKey, "/CN=traind",
                             absl::StrCat("subjectAltName=", absl::StrJoin(names, ","),
                                          "\nextendedKeyUsage=serverAuth\n")));
  return MakeSigned(dir, kTlsWorker, kTlsWorkerKey, "/CN=traind worker",
                    "subjectAltName=DNS:worker\nextendedKeyUsage=clientAuth\n");
}

}  // namespace

int RunToken(int argc, char** argv) {
  TokenFlags flags;
  CLI::App app("traind token - who may call traind; a running traind notices changes at once");
  app.require_subcommand(1);
  CLI::App* const add = app.add_subcommand("add", "Make a token");
  CLI::App* const list = app.add_subcommand("list", "Print names, roles and expiries");
  CLI::App* const revoke = app.add_subcommand("revoke", "Make a token worthless");
  for (CLI::App* const command : {add, list, revoke}) {
    command->add_option("--state", flags.state, "the state folder of traind")->required();
    if (command != list) command->add_option("NAME", flags.name, "whose token it is")->required();
  }
  add->add_option("--role", flags.role, "viewer, user, admin or worker")
      ->required()
      ->check(CLI::IsMember({"viewer", "user", "admin", "worker"}));
  add->add_option("--expires", flags.expires, "how long it counts: 30d; never: no limit")
      ->capture_default_str();
  add->add_option("--out", flags.out, "the file, of mode 0600, that the token is written to")
      ->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const absl::Status done = *list ? List(flags) : Change(flags, static_cast<bool>(*add));
  return done.ok() ? kExitOk : Fail(done);
}

int RunInitTls(int argc, char** argv) {
  std::string dir;
  std::vector<std::string> hosts;
  CLI::App app("traind init-tls - makes a CA, and certificates for traind and its Workers");
  app.add_option("DIR", dir, "the folder; it must not have a CA yet")->required();
  app.add_option("--host", hosts,
                 "a name or an address under which clients and Workers reach traind, besides "
                 "localhost; may be repeated")
      ->allow_extra_args(false);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const absl::Status made = InitTls(dir, hosts);
  if (!made.ok()) return Fail(made);
  std::cout << "made " << dir << "; start traind with --tls " << dir << ", give clients " << kTlsCa
            << " and Workers " << kTlsCa << ", " << kTlsWorker << " and " << kTlsWorkerKey
            << "; keep " << kTlsCaKey << " secret\n";
  return kExitOk;
}

}  // namespace traind
