// See node.h.
#include "tests/sim/node.h"

#include <fmt/core.h>

#include "common/proto/attempt.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "tests/sim/text.h"

namespace gantry::sim {
namespace {

// See noded/shim/fence.h: noded acts first, because the shim looks only from time to time.
constexpr Duration kShimLater = seconds(12);

// The epoch that an order of a session carries; a reply to a registration may answer an old one.
Epoch epoch_of(const node::Order& order) {
  return std::visit(
      []<class T>(const T& o) {
        if constexpr (std::is_same_v<T, proto::RegisterAgain>)
          return o.epoch;
        else if constexpr (!std::is_same_v<T, proto::NodeAccept> && requires { o.stamp; })
          return o.stamp.epoch;
        else
          return Epoch{};
      },
      order);
}

}  // namespace

Node::Node(Queue& queue, Random& random, Network& network, Truth& truth, Trace& trace,
           const Settings& settings, const NodeConfig& config)
    : queue_(queue),
      random_(random),
      network_(network),
      trace_(trace),
      settings_(settings),
      machine_(queue, random, truth, settings, config, random.between(seconds(-5), seconds(3600))) {
  machine_.on_event = [this] {
    queue_.after(microseconds(10), [this, life = daemon_] {
      machine_.when_awake([this, life] {
        if (core_ && life == daemon_) finish_turn();
      });
    });
  };
  machine_.on_user_code = [this] {  // the machine loses its power before the start is reported
    if (!random_.chance(settings_.dies_at_start)) return;
    queue_.after(Duration{}, [this] { power_off(); });
    queue_.after(random_.spread(minutes(6)), [this] { power_on(); });
  };
}

void Node::power_on() {
  if (powered_ || locked_off) return;
  powered_ = true;
  ++boot_;
  memory_.last_contact.reset();  // it survives the daemon, but not the machine's restart
  start_daemon();
}

void Node::power_off() {
  if (!powered_) return;
  if (core_) kill_daemon();
  powered_ = false;
  machine_.power_off();
  trace_.line(queue_.now(), name() + ": power off");
}

void Node::start_daemon() {
  if (!powered_ || core_) return;
  ++daemon_;
  armed_.reset();
  dies_after_.reset();
  proto::NodeRegister facts;
  facts.node = name();
  facts.version = "0.1.0";
  facts.boot_id = fmt::format("boot{}", boot_);
  for (std::uint32_t cpu = 0; cpu < machine_.config().cpus; ++cpu)
    facts.cpus.push_back(static_cast<std::uint16_t>(cpu));
  facts.memory = machine_.config().memory;
  facts.gpus = machine_.gpus();
  trace_.line(queue_.now(), fmt::format("{}: daemon starts, boot {}", name(), boot_));
  auto recovered = machine_.recover();
  core_ = std::make_unique<node::Core>(facts, memory_, std::move(recovered), machine_.clock());
  step(node::LinkUp{});
}

void Node::kill_daemon() {
  if (!core_) return;
  trace_.line(queue_.now(), name() + ": daemon dies");
  ++daemon_;
  core_.reset();
  machine_.daemon_died();
}

void Node::kill_daemon_within_turn(Duration down) {
  dies_after_ = random_.below(4);
  down_ = down;
}

void Node::stop_daemon() {
  if (!core_) return;
  trace_.line(queue_.now(), name() + ": daemon stops");
  step(node::Stop{});
  kill_daemon();
}

void Node::reconnect() {
  if (!core_) return;
  step(node::LinkDown{});
  if (core_) step(node::LinkUp{});
}

void Node::deliver(node::Order order) {
  if (!core_) return;
  if (machine_.sleeps())  // the order waits in the link's buffers
    return machine_.when_awake([this, life = daemon_, order = std::move(order)] {
      if (life == daemon_) deliver(order);
    });
  trace_.line(queue_.now(), fmt::format("{} <- {}", name(), text_of(order)));
  const Epoch told = epoch_of(order);
  step(node::FromController{std::move(order)});
  // otherwise the daemon died in this turn, and nobody knows that it obeyed the order
  if (core_) check_epoch(told);
}

void Node::step(node::Input input) {
  core_->step(machine_.clock(), std::move(input));
  finish_turn();
}

// Checks that the node remembers the newest epoch that it obeyed, so that it refuses older ones
// after a restart too.
void Node::check_epoch(Epoch told) {
  told_ = std::max(told_, told);
  if (memory_.epoch < told_)
    trace_.broken(queue_.now(), fmt::format("{} was told of epoch {} and its disk says {}", name(),
                                            told_.value(), memory_.epoch.value()));
}

void Node::tell_shims() {
  if (memory_.fence_after && memory_.last_contact)
    machine_.fence_at(*memory_.last_contact + *memory_.fence_after + kShimLater);
  else
    machine_.fence_at(std::nullopt);
}

void Node::finish_turn() {
  std::vector<node::Report> messages;
  std::vector<node::Input> events;
  std::optional<Instant> wake;
  do {
    machine_.poll(machine_.clock(), events);
    for (node::Input& event : events) core_->step(machine_.clock(), std::move(event));
    events.clear();
    node::Turn turn = core_->take_turn();
    wake = turn.wake;
    for (node::Action& action : turn.actions) {
      if (dies_after_ && (*dies_after_)-- == 0) {
        kill_daemon();
        queue_.after(down_, [this] { start_daemon(); });
        return;
      }
      if (auto* a = std::get_if<node::RememberEpoch>(&action)) {
        memory_.epoch = a->epoch;
        memory_.fence_after = a->fence_after;
        tell_shims();
      } else if (auto* a = std::get_if<node::RememberJob>(&action)) {
        memory_.highest_job = a->highest;
      } else if (auto* a = std::get_if<node::RememberContact>(&action)) {
        memory_.last_contact = a->at;
        tell_shims();
      } else {
        machine_.act(machine_.clock(), std::move(action), events);
      }
    }
    for (node::Report& m : turn.messages) messages.push_back(std::move(m));
  } while (!events.empty());
  for (node::Report& m : messages) {
    tell_sleep(m);
    trace_.line(queue_.now(), fmt::format("{} -> {}", name(), text_of(m)));
    network_.send(name(), true, Direction::to_controller,
                  [this, m = std::move(m)] { to_controller(name(), m); });
  }
  set_timer(wake);
}

// Does what noded/daemon.cc does.
void Node::tell_sleep(node::Report& report) const {
  if (auto* beat = std::get_if<proto::Heartbeat>(&report)) beat->asleep = machine_.asleep();
  if (auto* registration = std::get_if<proto::NodeRegister>(&report))
    for (const proto::AttemptSleep& sleep : machine_.asleep())
      for (proto::AttemptStatus& status : registration->attempts)
        if (status.key == sleep.key) status.asleep = sleep.asleep;
}

void Node::set_timer(std::optional<Instant> wake) {
  if (!wake || (armed_ && *armed_ <= *wake)) return;
  armed_ = wake;
  queue_.after(*wake - machine_.clock(), [this, life = daemon_, at = *wake] {
    machine_.when_awake([this, life, at] {
      if (!core_ || life != daemon_ || armed_ != at) return;
      armed_.reset();
      step(node::Wake{});
    });
  });
}

}  // namespace gantry::sim
