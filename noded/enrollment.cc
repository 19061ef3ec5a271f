#include "noded/enrollment.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "common/codec/codec.h"
#include "common/net/client.h"
#include "common/net/header.h"
#include "common/proto/messages.h"
#include "noded/machine/files.h"

namespace gantry::node {
namespace {

constexpr Duration kAnswerTime = seconds(10);

template <class T>
constexpr std::uint16_t number = static_cast<std::uint16_t>(proto::number_of<T>);

// The error unavailable means that nobody answered.
Result<void> show(const net::ClientOptions& options, const proto::UseEnrollToken& message) {
  auto client = net::Client::connect(options);
  if (!client) return fail(ErrorCode::unavailable, client.error().message);
  const net::HeaderBytes header({proto::kProtocolVersion, number<proto::UseEnrollToken>, 1});
  if (auto sent = client->send(header.view(), codec::encode(message), kAnswerTime); !sent)
    return fail(ErrorCode::unavailable, sent.error().message);
  const auto frames = client->receive(kAnswerTime);
  if (!frames) return fail(ErrorCode::unavailable, frames.error().message);
  ASSIGN(head, frames->size() == net::kFrames
                   ? net::decode_header((*frames)[0])
                   : fail(ErrorCode::malformed, "the controller's answer has no header"));
  if (head->type == number<proto::Ok>) return {};
  const auto refused = codec::decode<proto::ErrorReply>((*frames)[1]);
  return fail(ErrorCode::unauthenticated,
              refused ? refused->message : "the controller's answer cannot be read");
}

}  // namespace

Result<void> enroll_once(const std::string& token_file, const std::string& key_file,
                         const std::string& node, const std::string& endpoint,
                         const net::PublicKey& server) {
  if (::access(token_file.c_str(), F_OK) != 0 && errno == ENOENT) return {};
  ASSIGN(text, runtime::read_file(token_file));
  if (::access(key_file.c_str(), F_OK) != 0)
    if (auto made = net::save_key_pair(key_file, net::generate_key_pair()); !made) return made;
  ASSIGN(keys, net::load_key_pair(key_file));
  net::ClientOptions options;
  options.address = endpoint;
  options.server_key = server;
  options.keys = *keys;
  const proto::UseEnrollToken message{node, text->substr(0, text->find_first_of(" \t\r\n"))};
  const auto done = show(options, message);
  if (!done)
    return fail(done.error().code, fmt::format("{}: {}", token_file, done.error().message));
  if (::unlink(token_file.c_str()) != 0)
    return fail(ErrorCode::io_error, fmt::format("{} was used and cannot be removed: {}",
                                                 token_file, std::strerror(errno)));
  return {};
}

}  // namespace gantry::node
