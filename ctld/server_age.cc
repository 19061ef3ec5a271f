// Checks whether the store is older than what nodes know of it (ctld/age): at start, at each
// commit, and at each message of a node.
#include "ctld/age/gate.h"
#include "ctld/server.h"

namespace gantry::ctld {

Result<Server::Age> Server::load_age(const std::string& state_dir, Epoch epoch, EventSeq last) {
  Age age;
  ASSIGN(mark, age::load_high_water(state_dir));
  if (*mark) {
    age.mark = **mark;
    TRY(age::Gate::check(age.mark, epoch, last, state_dir + "/data.mdb"));
  }
  ASSIGN(strangers, age::Strangers::load(state_dir));
  age.strangers = std::move(*strangers);
  return age;
}

age::Gate Server::make_gate(Age age) {
  const std::string& state_dir = config_.controller.state_dir;
  return {
      age.mark,
      std::move(age.strangers),
      config_.nodes.size(),
      state_dir + "/data.mdb",
      {[state_dir](const age::HighWater& mark) { return age::save_high_water(state_dir, mark); },
       [this](core::ClientRequest order) { step(std::move(order)); },
       [this](LogLevel level, const std::string& what) { log_.write(level, what); }}};
}

// Returns false if the core must not get this message.
bool Server::admit(const std::string& node, core::NodeMessage& message) {
  const auto admitted = gate_.admit(core_->state(), node, message);
  if (!admitted) fatal(admitted.error());
  return admitted.value_or(false) && !failed_;
}

}  // namespace gantry::ctld
