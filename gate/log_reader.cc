#include "gate/log_reader.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gantry::gate {
namespace {

constexpr std::size_t kPiece = 256u << 10;
constexpr std::size_t kLongestLine = 4'096;
constexpr std::size_t kMostWriters = 32;

}  // namespace

Result<std::unique_ptr<LogReader>> LogReader::open(loop::Loop& loop, const std::string& path,
                                                   unsigned writer, OnLine on_line) {
  std::unique_ptr<LogReader> reader(new LogReader(loop, writer, std::move(on_line)));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (path.size() >= sizeof at.sun_path)
    return fail(ErrorCode::invalid_argument, fmt::format("{}: the path is too long", path));
  std::memcpy(at.sun_path, path.data(), path.size());
  ::unlink(path.c_str());
  reader->listening_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = reader->listening_.get();
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(fd, 8) != 0)
    return fail(ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
  reader->accepting_ = loop.on_readable(fd, [raw = reader.get()] { raw->take(); });
  return reader;
}

void LogReader::take() {
  for (;;) {
    Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool known = ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                       (peer.uid == writer_ || peer.uid == 0);
    if (!known || writers_.size() >= kMostWriters) continue;
    Writer& writer = writers_.emplace_back();
    writer.fd = std::move(fd);
    writer.watch = loop_.on_readable(writer.fd.get(), [this, &writer] { read(writer); });
  }
}

void LogReader::read(Writer& writer) {
  static std::array<char, kPiece> piece;
  const ssize_t n = ::recv(writer.fd.get(), piece.data(), piece.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    writers_.remove_if([&](const Writer& w) { return &w == &writer; });
    return;
  }
  std::string_view text(piece.data(), static_cast<std::size_t>(n));
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view part = text.substr(0, end);
    if (writer.begun.size() + part.size() <= kLongestLine) writer.begun += part;
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    on_line_(writer.begun);
    writer.begun.clear();
  }
}

}  // namespace gantry::gate
