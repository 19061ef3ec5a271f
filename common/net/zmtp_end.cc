#include "common/net/zmtp_end.h"

#include <sodium.h>

#include <algorithm>

#include "common/assert.h"

namespace gantry::net::zmtp {
namespace {

using namespace std::literals;

constexpr std::size_t kKeptInput = 64 << 10;  // bytes of input buffer that an idle connection keeps

}  // namespace

End::End(const Side& side, const KeyPair& own) : own_(own), side_(&side), parts_(side.most_bytes) {
  const int ready = sodium_init();
  GANTRY_ASSERT(ready >= 0, "libsodium cannot start");
  output_.tail() = greeting(side.server);
}

Result<void> End::broken(std::string why) {
  state_ = State::failed;
  return fail(side_->error, std::move(why));
}

void End::send_box(std::uint8_t inner_flags, std::string_view content) {
  append_message(output_.tail(), session_, side_->sends, ++nonce_, inner_flags, content);
}

void End::send(std::span<const std::string_view> frames) {
  GANTRY_ASSERT(ready() && !frames.empty(), "send() before the handshake is done");
  for (std::size_t i = 0; i < frames.size(); ++i)
    send_box(i + 1 < frames.size() ? kFlagMore : 0, frames[i]);
}

std::optional<std::vector<Bytes>> End::next() {
  if (messages_.empty()) return std::nullopt;
  std::vector<Bytes> message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

Result<void> End::feed(std::string_view bytes) {
  input_ += bytes;
  std::size_t done = 0;
  while (true) {
    if (state_ == State::failed) return broken("the connection has failed");
    std::size_t used = done;
    if (const Result<void> result = consume(used); !result) return result;
    if (used == done) break;
    done = used;
  }
  input_.erase(0, done);
  if (input_.empty() && input_.capacity() > kKeptInput) input_ = std::string();
  return {};
}

Result<void> End::consume(std::size_t& used) {
  const std::string_view rest = std::string_view(input_).substr(used);
  if (state_ == State::greeting) {
    if (!rest.empty() && rest[0] != '\xff')
      return broken(std::string(side_->other) + " does not speak ZMTP");
    if (rest.size() < kGreetingBytes) return {};
    used += kGreetingBytes;
    if (const auto sound = check_greeting(rest.substr(0, kGreetingBytes)); !sound)
      return broken(sound.error().message);
    state_ = State::first;
    return {};
  }
  const auto frame = take_frame(rest, ready() ? kMaxWireFrame : side_->first_frame);
  if (!frame) return broken(frame.error().message);
  if (!*frame) return {};
  used += (*frame)->size;
  return on_frame((*frame)->flags, (*frame)->body);
}

Result<void> End::on_frame(std::uint8_t flags, std::string_view body) {
  if (!side_->server && (flags & kWireCommand) != 0 &&
      body.starts_with("\x05"sv
                       "ERROR")) {
    const std::string_view reason = body.substr(std::min<std::size_t>(7, body.size()));
    std::string shown;
    for (const char c : reason) shown += c >= ' ' && c < 127 ? c : '?';
    return broken("the other side refuses the connection: " + shown);
  }
  switch (state_) {
    case State::first: return on_first(body);
    case State::second: return on_second(body);
    case State::ready: return on_message(body);
    case State::greeting:
    case State::failed: break;
  }
  return broken("the connection has failed");
}

Result<void> End::on_message(std::string_view body) {
  auto opened = open_message(body, session_, side_->receives, peer_nonce_);
  if (!opened) return broken(opened.error().message);
  if ((opened->flags & kFlagCommand) != 0) {  // those but PING mean nothing to either side
    const auto context = ping_context(opened->content);
    if (!context) return broken(context.error().message);
    if (*context && output().size() < side_->most_pongs)
      send_box(kFlagCommand, std::string("\x04PONG").append(**context));
    return {};
  }
  auto message = parts_.add(std::move(*opened));
  if (!message) return broken(message.error().message);
  if (*message) messages_.push_back(std::move(**message));
  return {};
}

}  // namespace gantry::net::zmtp
