// Reading the configuration again. The server ends, and main() makes a new one in the same process
// from the store, as after a restart. Nodes are told to read their file too; jobs continue
// meanwhile.
#include "common/codec/codec.h"
#include "common/proto/control.h"
#include "common/proto/message_table.h"
#include "common/proto/session.h"
#include "ctld/core/core.h"
#include "ctld/core/tenancy/admission.h"
#include "ctld/rpc/dispatch.h"
#include "ctld/server.h"

namespace gantry::ctld {
namespace {

constexpr Duration kFarewell = milliseconds(50);  // time for the answer and the orders to be sent

// The name of an option that differs and must not change in a running process, because the store or
// clients depend on it; "" if there is none.
std::string fixed_part(const Config& before, const Config& now) {
  const ControllerConfig& a = before.controller;
  const ControllerConfig& b = now.controller;
  if (before.cluster != now.cluster) return "cluster";
  if (a.state_dir != b.state_dir) return "controller.state_dir";
  if (a.host != b.host) return "controller.host";
  if (a.port != b.port) return "controller.port";
  if (a.secret_key_file != b.secret_key_file) return "controller.secret_key_file";
  return "";
}

}  // namespace

void Server::keeps_config(std::string why) {
  config_problem_ = std::move(why);
  log_.write(LogLevel::error, "the configuration is as it was", {{"why", config_problem_}});
}

void Server::reconfigured() {
  step(core::Reconfigured{});
  end_of_turn();
}

Result<void> Server::check_new_config() const {
  ASSIGN(now, load_config(config_.path));
  if (const std::string name = fixed_part(config_, *now); !name.empty())
    return fail(ErrorCode::wrong_state,
                fmt::format("{}: {} has changed, which takes a restart of gantry-ctld",
                            config_.path, name));
  if (const auto unknown = core::unknown_in_lists(core_->state(), *now); !unknown.empty())
    return fail(ErrorCode::invalid_argument, fmt::format("{}: {}", config_.path, unknown.front()));
  return {};
}

void Server::start_anew() {
  const auto type = static_cast<std::uint16_t>(proto::number_of<proto::RereadConfig>);
  const Bytes body = codec::encode(proto::RereadConfig{});
  for (const std::string& node : connections_.nodes())
    if (!connections_.send_to_node(node, type, body))
      log_.write(LogLevel::warning, "a node does not hear that it should read its configuration",
                 {{"node", node}});
  again_ = true;
  leave_ = loop_.after(kFarewell, [this] { loop_.stop(); });
}

void Server::reconfigure(const Asked& asked) {
  if (auto sound = check_new_config(); !sound)
    return connections_.refuse(asked.session, asked.request, sound.error());
  log_.write(LogLevel::info, "reading the configuration again", {{"by", asked.who.owner.user}});
  connections_.send(asked.session, asked.request, proto::Ok{});
  start_anew();
}

}  // namespace gantry::ctld
