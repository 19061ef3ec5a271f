#include "tests/cli/fake_controller.h"

#include <poll.h>

#include "cli/client_config.h"
#include "cli/session.h"
#include "common/auth/registered_key.h"
#include "common/net/header.h"

namespace gantry::test {

FakeController::FakeController() {
  const net::KeyPair keys = net::generate_key_pair();
  net::RouterOptions options;
  options.endpoints = {"tcp://127.0.0.1:*"};
  options.keys = keys;
  auto router = net::Router::open(options);
  GANTRY_ASSERT(router.has_value(), "the router opens");
  router_ = std::make_unique<net::Router>(std::move(*router));
  const std::string endpoint = router_->endpoints()[0];
  const std::string key = files_.path() + "/user.key";
  GANTRY_ASSERT(auth::save_signing_key(key, auth::generate_signing_key()).has_value(), "key");
  (void)files_.file("client.conf",
                    cli::client_config_text("fake", endpoint.substr(endpoint.rfind('/') + 1),
                                            keys.public_key, key));
  answer<proto::Hello>(proto::HelloReply{proto::kProtocolVersion, "fake", "0", Epoch{1}, {}});
  thread_ = std::thread([this] { serve(); });
}

FakeController::~FakeController() {
  stop_ = true;
  thread_.join();
}

std::size_t FakeController::count(proto::MessageType type) {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<std::uint16_t>(type)];
}

Run FakeController::run(std::vector<std::string> argv, std::string input,
                        std::map<std::string, std::string> more) {
  Call call{std::move(argv), environment(), std::move(input), files_.path()};
  for (auto& [name, value] : more) call.environment[name] = value;
  return run_program(call);
}

void FakeController::serve() {
  while (!stop_) {
    while (auto message = router_->receive()) handle(*message);
    pollfd fd{router_->descriptor(), POLLIN, 0};
    if (!router_->readable()) ::poll(&fd, 1, 20);
  }
}

void FakeController::handle(const net::Incoming& message) {
  const auto header = net::decode_header(message.header);
  GANTRY_ASSERT(header.has_value(), "commands send whole headers");
  const std::lock_guard lock(mutex_);
  seen_[header->type] = message.body;
  ++counts_[header->type];
  if (header->type == static_cast<std::uint16_t>(proto::MessageType::Authenticate)) {
    // The credential must be made for the key with which the transport has authenticated the
    // client.
    const auto request = codec::decode<proto::Authenticate>(message.body);
    GANTRY_ASSERT(request && request->method == proto::AuthMethod::key, "a key is shown");
    const auto now = cli::system_now();
    GANTRY_ASSERT(auth::check_key_credential(request->credential, message.key, now).has_value(),
                  "the credential covers the session key");
    return;
  }
  if (drop_ > 0 && header->type != static_cast<std::uint16_t>(proto::MessageType::Hello)) {
    --drop_;
    return;
  }
  const auto handler = handlers_.find(header->type);
  const Answer answer = handler == handlers_.end()
                            ? encode(proto::ErrorReply{
                                  static_cast<std::uint16_t>(ErrorCode::unsupported), "not faked"})
                            : handler->second(message.body);
  const net::HeaderBytes reply({proto::kProtocolVersion, answer.type, header->request});
  (void)router_->send(message.peer, reply.view(), answer.body);
}

}  // namespace gantry::test
