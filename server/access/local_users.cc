#include "server/access/local_users.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/strip.h>
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "common/base/log.h"

namespace traind {
namespace {

// "::ffff:127.0.0.1", as a socket of IPv6 names a client of IPv4, is "127.0.0.1".
std::string Plain(absl::string_view address) {
  absl::ConsumePrefix(&address, "::ffff:");
  return std::string(address);
}

bool IsLoopbackAddress(const std::string& address) {
  return absl::StartsWith(address, "127.") || address == "::1";
}

// Splits what gRPC calls a peer.
std::optional<std::pair<std::string, int>> ReadPeer(absl::string_view peer) {
  if (!absl::ConsumePrefix(&peer, "ipv4:") && !absl::ConsumePrefix(&peer, "ipv6:")) {
    return std::nullopt;
  }
  const std::string text =
      absl::StrReplaceAll(peer, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  const size_t colon = text.rfind(':');
  int port = 0;
  if (colon == text.npos || !absl::SimpleAtoi(text.substr(colon + 1), &port)) return std::nullopt;
  return std::make_pair(Plain(text.substr(0, colon)), port);
}

bool ReadAddress(const std::string& text, int family, __be32* to) {
  return inet_pton(family, text.c_str(), to) == 1;
}

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

}  // namespace

std::optional<uid_t> UserOfClient(const LoopbackConnection& connection) {
  const int family = absl::StrContains(connection.client, ':') ? AF_INET6 : AF_INET;
  Question question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = static_cast<__u8>(family);
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_states = 1u << TCP_ESTABLISHED;
  question.body.id.idiag_cookie[0] = question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  question.body.id.idiag_sport = htons(static_cast<uint16_t>(connection.client_port));
  question.body.id.idiag_dport = htons(static_cast<uint16_t>(connection.server_port));
  if (!ReadAddress(connection.client, family, question.body.id.idiag_src) ||
      !ReadAddress(connection.server, family, question.body.id.idiag_dst)) {
    return std::nullopt;
  }
  const int netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0) return std::nullopt;
  const auto close_netlink = absl::MakeCleanup([netlink] { close(netlink); });
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(netlink, &question, sizeof question, 0, reinterpret_cast<sockaddr*>(&kernel),
             sizeof kernel) != static_cast<ssize_t>(sizeof question)) {
    return std::nullopt;
  }
  alignas(nlmsghdr) char answer[4096];
  const ssize_t got = recv(netlink, answer, sizeof answer, 0);
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) return std::nullopt;
  nlmsghdr header;
  std::memcpy(&header, answer, sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;  // an error
  inet_diag_msg found;
  std::memcpy(&found, answer + NLMSG_HDRLEN, sizeof found);
  // A connection that is being closed belongs to nobody, which the kernel tells as root.
  if (found.idiag_state != TCP_ESTABLISHED) return std::nullopt;
  return found.idiag_uid;
}

LocalUsers::LocalUsers(std::string host) : host_(std::move(host)) {}

std::string LocalUsers::ServerFor(const std::string& client) const {
  const bool v6 = absl::StrContains(client, ':');
  in_addr numeric{};
  if (!v6 && inet_pton(AF_INET, host_.c_str(), &numeric) == 1) return host_;
  return v6 ? "::1" : "127.0.0.1";
}

bool LocalUsers::KernelTells(int port) const {
  const std::string server = ServerFor(absl::StrContains(host_, ':') ? "::1" : "127.0.0.1");
  sockaddr_storage address{};
  socklen_t size = 0;
  if (absl::StrContains(server, ':')) {
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET6, server.c_str(), &v6->sin6_addr);
    size = sizeof *v6;
  } else {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&address);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, server.c_str(), &v4->sin_addr);
    size = sizeof *v4;
  }
  const int client = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (client < 0) return false;
  const auto close_client = absl::MakeCleanup([client] { close(client); });
  if (connect(client, reinterpret_cast<sockaddr*>(&address), size) != 0) return false;
  size = sizeof address;
  if (getsockname(client, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  char text[INET6_ADDRSTRLEN] = "";
  int own_port = 0;
  if (address.ss_family == AF_INET6) {
    const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    own_port = ntohs(v6->sin6_port);
  } else {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&address);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    own_port = ntohs(v4->sin_port);
  }
  const auto user = UserOfClient({text, server, own_port, port});
  return user.has_value() && *user == geteuid();
}

void LocalUsers::ListenAt(int port) {
  if (!KernelTells(port)) {
    tells_ = false;
    TRAIND_LOG(WARNING) << "this kernel does not tell which user a connection belongs to: every "
                           "user of this machine may call traind at port "
                        << port;
  }
  port_ = port;
}

absl::Status LocalUsers::Check(absl::string_view peer) const {
  const int port = port_;
  if (port == 0) return absl::UnavailableError("traind is starting");
  if (!tells_) return absl::OkStatus();
  const auto client = ReadPeer(peer);
  if (client && IsLoopbackAddress(client->first)) {
    const auto user = UserOfClient({client->first, ServerFor(client->first), client->second, port});
    if (user && (*user == geteuid() || *user == 0)) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "this traind answers the user it runs as (uid ", geteuid(),
      ") and root, no other user of this machine; start it with --local-users any, or with --tls "
      "and tokens, if others may call it"));
}

}  // namespace traind
