// See faults.h.
#include "tests/sim/faults.h"

#include <fmt/core.h>

#include "common/proto/cluster.h"
#include "ctld/store/store.h"

namespace gantry::sim {

void Faults::every(Duration mean, void (Faults::*fault)()) {
  if (mean == Duration{}) return;
  queue_.after(random_.between(microseconds(1), mean * 2), [this, mean, fault] {
    if (stopped_) return;
    (this->*fault)();
    every(mean, fault);
  });
}

void Faults::start() {
  const FaultRates& f = settings_.faults;
  every(f.node_daemon, &Faults::daemon_dies);
  every(f.node_stop, &Faults::daemon_stops);
  every(f.machine, &Faults::machine_dies);
  every(f.shim, &Faults::shim_dies);
  every(f.cut, &Faults::link_is_cut);
  every(f.client_cut, &Faults::client_is_cut);
  every(f.controller, &Faults::controller_dies);
  every(f.commit, &Faults::commit_fails);
  every(f.fold, &Faults::fold_fails);
  every(f.disk_full, &Faults::disk_fills);
  every(f.declared_dead, &Faults::node_is_declared_dead);
  every(f.gpu, &Faults::gpu_breaks);
  every(f.controller_pause, &Faults::controller_stands_still);
  every(f.machine_sleep, &Faults::machine_sleeps);
}

void Faults::stop() {
  stopped_ = true;
  network_.calm();
  controller_.calm();
  for (auto& node : nodes_) {
    node->machine().wake_up();
    node->locked_off = false;
    node->calm();
    (void)node->machine().repair_gpus();
    node->power_on();
    node->start_daemon();
    node->reconnect();
  }
}

void Faults::daemon_dies() {
  Node& node = some_node();
  if (!node.daemon_runs() || node.machine().sleeps()) return;
  const Duration down = random_.spread(kDaemonDown);
  if (random_.chance(400)) return node.kill_daemon_within_turn(down);
  node.kill_daemon();
  queue_.after(down, [&node] { node.start_daemon(); });
}

void Faults::daemon_stops() {
  Node& node = some_node();
  if (!node.daemon_runs() || node.machine().sleeps()) return;
  if (random_.chance(300)) return node.reconnect();
  node.stop_daemon();
  queue_.after(random_.spread(kDaemonDown),  // the daemon's goodbye may be lost
               [&node] { node.start_daemon(); });
}

void Faults::machine_dies() {
  Node& node = some_node();
  node.power_off();
  queue_.after(random_.spread(minutes(6)), [&node] { node.power_on(); });
}

void Faults::shim_dies() {
  Node& node = some_node();
  if (node.powered() && !node.machine().sleeps() && node.machine().kill_a_shim())
    trace_.line(queue_.now(), node.name() + ": a shim is killed");
}

void Faults::gpu_breaks() {
  Node& node = some_node();
  if (!node.machine().break_gpu()) return;
  trace_.line(queue_.now(), node.name() + ": a GPU breaks");
  queue_.after(random_.spread(minutes(10)), [this, &node] {
    if (node.machine().repair_gpus())
      trace_.line(queue_.now(), node.name() + ": GPUs are repaired");
  });
}

void Faults::link_is_cut() {
  const std::string& name = some_node().name();
  const Instant until = queue_.now() + random_.spread(minutes(8));
  const auto which = random_.below(4);
  if (which != 0) network_.cut(name, Direction::to_controller, until);
  if (which != 1) network_.cut(name, Direction::from_controller, until);
  trace_.line(queue_.now(), fmt::format("{}: link cut ({})", name, which));
}

void Faults::controller_stands_still() {
  controller_.pause(random_.spread(minutes(5)));
}

// A machine that sleeps beyond the end of its fence runs on for a moment when it wakes up, so
// machines do not sleep that long here.
void Faults::machine_sleeps() {
  Node& node = some_node();
  if (!node.powered()) return;
  const bool fence = settings_.config.controller.lost_node_policy == LostNodePolicy::fence;
  // the fence has a margin of 30 s
  const Duration length =
      fence ? random_.between(seconds(1), seconds(20)) : random_.spread(minutes(4));
  // A guest that its host stops does not notice: its clocks stand still.
  const bool clock_stops = !fence && random_.chance(300);
  node.machine().fall_asleep(length, clock_stops);
  trace_.line(queue_.now(), fmt::format("{}: sleeps for {} s{}", node.name(), length.seconds(),
                                        clock_stops ? ", and its clock stands still" : ""));
}

void Faults::client_is_cut() {
  const std::string& name = random_.pick(clients_.names());
  const Instant until = queue_.now() + random_.spread(minutes(2));
  if (random_.chance(700)) network_.cut(name, Direction::to_controller, until);
  if (random_.chance(700)) network_.cut(name, Direction::from_controller, until);
}

void Faults::controller_dies() {
  if (random_.chance(500))
    controller_.crash("killed");
  else
    controller_.crash_while_sending();
}

void Faults::commit_fails() {
  controller_.crash_next_commit(random_.chance(500) ? store::CrashPoint::before_commit
                                                    : store::CrashPoint::after_commit);
}

void Faults::fold_fails() {
  controller_.crash_next_fold(random_.chance(500) ? store::CrashPoint::before_commit
                                                  : store::CrashPoint::after_commit);
}

void Faults::disk_fills() {
  controller_.fill_disk();
  trace_.line(queue_.now(), "the disk is nearly full");
  queue_.after(random_.spread(minutes(2)), [this] { controller_.empty_disk(); });
}

void Faults::node_is_declared_dead() {
  Node& node = some_node();
  if (node.locked_off) return;
  node.power_off();
  node.locked_off = true;
  queue_.after(settings_.config.controller.node_timeout + settings_.nodes.latest + seconds(5),
               [this, &node] { declare_dead(node); });
}

void Faults::declare_dead(Node& node) {
  if (stopped_) return;
  proto::UpdateNodes m;
  m.nodes = {node.name()};
  m.action = proto::NodeAction::dead;
  m.reason = "it burns";
  clients_.say_safely(m);
  queue_.after(random_.between(seconds(1), seconds(60)), [&node] {
    node.locked_off = false;
    node.power_on();
  });
}

}  // namespace gantry::sim
