// Draws the settings; see settings.h.
#include "tests/sim/settings.h"

#include <algorithm>

#include <fmt/core.h>

#include "tests/sim/gpus.h"

namespace gantry::sim {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

void draw_cluster(Random& random, Config& config) {
  const auto count = random.between(3, 6);
  PartitionConfig all;
  all.name = "main";
  all.is_default = true;
  all.default_time = minutes(10);
  all.max_time = minutes(60);
  for (std::int64_t i = 1; i <= count; ++i) {
    NodeConfig node;
    node.name = fmt::format("n{}", i);
    node.cpus = static_cast<std::uint32_t>(random.between(1, 6));
    node.memory = random.between(2, 8) * kGiB;
    if (random.chance(400)) node.features = {"fast"};
    all.nodes.push_back(node.name);
    config.nodes.push_back(std::move(node));
  }
  PartitionConfig some = all;
  some.name = "some";
  some.is_default = false;
  some.priority = 10;
  some.max_nodes = 2;
  some.exclusive_nodes = random.chance(200);
  some.nodes.resize(2);
  config.partitions = {std::move(all), std::move(some)};
}

void draw_controller(Random& random, ControllerConfig& c) {
  c.heartbeat = seconds(random.between(1, 5));
  c.node_timeout = c.heartbeat * random.between(3, 6);
  c.kill_wait = seconds(random.between(1, 30));
  c.start_timeout = seconds(random.between(20, 60));
  c.min_job_age = minutes(15);
  c.max_requeues = static_cast<std::uint32_t>(random.between(3, 16));
  if (random.chance(500)) {
    c.lost_node_policy = LostNodePolicy::fence;
    c.fence_after = c.node_timeout + seconds(random.between(5, 120));
  }
}

LinkQuality draw_link(Random& random) {
  LinkQuality q;
  if (random.chance(250)) return q;
  if (random.chance(700)) q.lose = random.below(150);
  if (random.chance(600)) q.twice = random.below(100);
  if (random.chance(600)) q.late = random.below(200);
  q.usual = milliseconds(random.between(1, 50));
  q.latest = seconds(random.between(1, 20));
  return q;
}

void draw_faults(Random& random, FaultRates& f) {
  const auto draw = [&](Duration low, Duration high) {
    return random.chance(500) ? random.between(low, high) : Duration{};
  };
  f.node_daemon = draw(seconds(20), seconds(300));
  f.node_stop = draw(seconds(60), seconds(600));
  f.machine = draw(seconds(60), seconds(600));
  f.shim = draw(seconds(20), seconds(300));
  f.cut = draw(seconds(30), seconds(300));
  f.client_cut = draw(seconds(60), seconds(300));
  f.controller = draw(seconds(30), seconds(300));
  f.commit = draw(seconds(10), seconds(200));
  f.fold = draw(seconds(30), seconds(300));
  f.disk_full = draw(seconds(60), seconds(600));
  f.declared_dead = draw(seconds(120), seconds(600));
}

// The settings for tenants are drawn after those of every history, so that histories without
// tenants do not depend on them.
void draw_for_tenants(Random& random, Settings& s) {
  for (NodeConfig& node : s.config.nodes) {
    node.cpus += static_cast<std::uint32_t>(random.between(0, 4));
    if (!random.chance(600)) continue;
    node.gpus = static_cast<std::uint32_t>(random.between(1, 4));
    node.gpu_model = random.chance(500) ? "a100" : "h100";
  }
  s.config.controller.fair_share_half_life =
      random.pick(std::vector<Duration>{hours(7 * 24), hours(1), minutes(10)});
  s.jobs = static_cast<std::size_t>(random.between(30, 140));
  s.clients_count = static_cast<std::size_t>(random.between(2, 5));
  if (random.chance(500)) s.refused_start = random.below(60);
  // A search for victims counts as a hundred attempts, so the budget must allow some.
  if (s.plan_attempts < 1000) s.plan_attempts = 500 + 100 * s.plan_attempts;
  s.keep_reservations = random.chance(600);
  if (!s.keep_reservations) s.everything = {};
  if (random.chance(300)) s.reservations = static_cast<std::uint32_t>(random.between(2, 4));
  s.ahead = 0;
  if (random.chance(500)) s.ahead = static_cast<std::uint32_t>(random.between(1, 10));
  if (random.chance(500)) s.estimates = 10;
}

// Jobs ask for whole nodes, and tenants within their quota take these back from others.
void draw_for_gangs(Random& random, Settings& s) {
  s.gangs = true;
  for (NodeConfig& node : s.config.nodes) {
    node.cpus = 16;
    node.memory = 64 * kGiB;
    node.gpus = 8;
    node.gpu_model = "h100";
  }
  s.jobs = static_cast<std::size_t>(random.between(60, 160));
}

void draw_pauses(Random& random, FaultRates& f) {
  f.controller_pause = random.between(seconds(60), seconds(600));
  if (random.chance(700)) f.machine_sleep = random.between(seconds(60), seconds(600));
}

}  // namespace

Settings settings_of(Random& random, With with) {
  Settings s;
  s.tenants = with.tenants;
  draw_cluster(random, s.config);
  draw_controller(random, s.config.controller);
  s.nodes = draw_link(random);
  s.clients = draw_link(random);
  draw_faults(random, s.faults);
  if (random.chance(500)) s.slow_start = random.below(60);
  if (random.chance(500)) s.failing_start = random.below(100);
  if (random.chance(500)) s.late_plan = random.below(200);
  if (random.chance(200)) s.plan_attempts = static_cast<std::uint64_t>(random.between(1, 20));
  if (random.chance(200)) s.plan_starts = static_cast<std::uint32_t>(random.between(1, 3));
  s.clients_count = static_cast<std::size_t>(random.between(1, 4));
  s.jobs = static_cast<std::size_t>(random.between(10, 90));
  s.trouble = minutes(random.between(5, 40));
  if (random.chance(300)) s.dies_at_start = random.below(100);
  if (with.tenants) draw_for_tenants(random, s);
  if (with.gangs) draw_for_gangs(random, s);
  if (with.gpus) draw_for_gpus(random, s);
  s.changes = with.changes;
  if (with.balance)
    s.config.controller.balance = random.pick(std::vector<Duration>{minutes(2), hours(1)});
  if (with.pauses) draw_pauses(random, s.faults);
  return s;
}

}  // namespace gantry::sim
