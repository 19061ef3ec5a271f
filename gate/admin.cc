#include "gate/admin.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "common/net/socket.h"
#include "common/time/time.h"

namespace gantry::gate {
namespace {

constexpr std::string_view kPrompt = "\n> ";
constexpr std::size_t kMost = 64u << 20;  // octets of one answer

}  // namespace

Result<Admin> Admin::connect(const std::string& path) {
  Admin admin;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof to.sun_path)
    return fail(ErrorCode::invalid_argument, fmt::format("{}: the path is too long", path));
  std::memcpy(to.sun_path, path.data(), path.size());
  admin.fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(admin.fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return fail(ErrorCode::unavailable, fmt::format("{}: {}", path, std::strerror(errno)));
  TRY(admin.ask("prompt"));
  TRY(admin.ask("set timeout cli 1d"));
  return admin;
}

Result<std::string> Admin::ask(const std::string& command) {
  const net::Deadline deadline{milliseconds(kAnswerMs)};
  const std::string line = command + "\n";
  for (std::size_t at = 0; at < line.size();) {
    ASSIGN(sent, net::write_some(fd_.get(), std::string_view(line).substr(at)));
    at += *sent;
    if (*sent > 0) continue;
    TRY(net::wait_for(fd_.get(), net::Wait::write, deadline));
  }
  std::string said;
  std::array<char, 64u << 10> piece;
  while (!said.ends_with(kPrompt) && said != kPrompt.substr(1)) {
    ASSIGN(got, net::read_some(fd_.get(), piece.data(), piece.size()));
    said.append(piece.data(), *got);
    if (said.size() > kMost) return fail(ErrorCode::malformed, "HAProxy's answer is too long");
    if (*got > 0) continue;
    TRY(net::wait_for(fd_.get(), net::Wait::read, deadline));
  }
  said.resize(said.size() - std::min(said.size(), kPrompt.size()));
  while (said.ends_with('\n')) said.pop_back();
  return said;
}

Result<int> Admin::process() {
  ASSIGN(info, ask("show info"));
  constexpr std::string_view kPid = "\nPid: ";
  const std::size_t at = info->find(kPid);
  int pid = 0;
  if (at != std::string::npos)
    std::from_chars(info->data() + at + kPid.size(), info->data() + info->size(), pid);
  return pid;
}

}  // namespace gantry::gate
