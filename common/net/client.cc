#include "common/net/client.h"

#include <fmt/core.h>

#include <array>

#include "common/net/socket.h"
#include "common/net/zmtp.h"

namespace gantry::net {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;

}  // namespace

struct Client::Impl {
  Impl(Socket s, ZmtpClient e, std::string a, const Deadline& d)
      : socket(std::move(s)), engine(std::move(e)), address(std::move(a)), handshake_by(d) {}
  Socket socket;
  ZmtpClient engine;
  std::string address;
  Deadline handshake_by;
  std::array<char, kReadBytes> buffer;

  // Writes everything that waits. It also reads what arrives meanwhile: a peer whose messages are
  // not read may stop reading.
  Result<void> flush(const Deadline& deadline) {
    while (!engine.output().empty()) {
      ASSIGN(n, write_some(socket.fd(), engine.output()));
      engine.written(*n);
      if (*n > 0) continue;
      ASSIGN(fed, take_input());
      if (*fed > 0) continue;
      if (const auto ok = wait_for(socket.fd(), Wait::either, deadline); !ok) return ok;
    }
    return {};
  }

  // Gives the engine what has arrived. Returns the number of bytes; 0 if there was nothing.
  Result<std::size_t> take_input() {
    const auto n = read_some(socket.fd(), buffer.data(), buffer.size());
    if (!n || *n == 0) return n;
    TRY(engine.feed({buffer.data(), *n}));
    return n;
  }

  Result<void> handshake(const Deadline& deadline) {
    while (!engine.ready()) {
      if (const auto ok = flush(deadline); !ok) return ok;
      ASSIGN(n, take_input());
      if (*n > 0) continue;
      if (const auto ok = wait_for(socket.fd(), Wait::read, deadline); !ok) return ok;
    }
    return flush(deadline);
  }
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::start(const ClientOptions& options) {
  const Deadline deadline(options.timeout);
  ASSIGN(socket, connect_to(options.address, deadline, options.from));
  const KeyPair keys = options.keys ? *options.keys : generate_key_pair();
  auto impl = std::make_unique<Impl>(std::move(*socket), ZmtpClient(options.server_key, keys),
                                     options.address, deadline);
  // An error here is ignored: finish() gets it again, and reports it.
  (void)write_some(impl->socket.fd(), impl->engine.output()).map([&](std::size_t n) {
    impl->engine.written(n);
  });
  return Client(std::move(impl));
}

Result<void> Client::finish() {
  const auto ok = impl_->handshake(impl_->handshake_by);
  if (ok) return {};
  const bool late = ok.error().code == ErrorCode::timed_out;
  return fail(ok.error().code,
              fmt::format("no encrypted connection to {}: {}{}", impl_->address, ok.error().message,
                          late ? "" : " (is the server key the right one?)"));
}

Result<Client> Client::connect(const ClientOptions& options) {
  auto client = start(options);
  if (!client) return client;
  TRY(client->finish());
  return client;
}

const PublicKey& Client::session_key() const {
  return impl_->engine.session_key();
}
int Client::descriptor() const {
  return impl_->socket.fd();
}

void Client::queue(std::string_view header, std::string_view body) {
  const std::string_view frames[] = {header, body};
  impl_->engine.send(frames);
}

std::size_t Client::queued_bytes() const {
  return impl_->engine.output().size();
}
Result<void> Client::flush(Duration timeout) {
  return impl_->flush(Deadline(timeout));
}

Result<void> Client::send(std::string_view header, std::string_view body, Duration timeout) {
  return send_frames({header, body}, timeout);
}

Result<void> Client::send_frames(std::initializer_list<std::string_view> frames, Duration timeout) {
  impl_->engine.send({frames.begin(), frames.size()});
  return impl_->flush(Deadline(timeout));
}

Result<std::vector<Bytes>> Client::receive(Duration timeout) {
  const Deadline deadline(timeout);
  while (true) {
    if (auto message = impl_->engine.next()) return std::move(*message);
    ASSIGN(n, impl_->take_input());
    if (*n > 0) {
      if (impl_->engine.output().empty()) continue;
      // Sends pongs.
      TRY(impl_->flush(deadline));
      continue;
    }
    TRY(wait_for(impl_->socket.fd(), Wait::read, deadline));
  }
}

}  // namespace gantry::net
