#include "tests/neighbours/machine_model.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace gantry::neighbours::model {
namespace {

constexpr int kTick = 100;  // milliseconds
constexpr int kSeconds = 150;
constexpr int kTicks = kSeconds * 1000 / kTick;
constexpr int kTicksOfSample = 30;

struct Actor {
  double usual = 0;    // its usual demand, as a part of the resource
  double flood = 0;    // its demand from the onset on
  double limit = 0;    // its own limit; 0 = none
  int burst = 0;       // ticks of a flood, and of the pause after it; 0 = steady
  int ramp = 0;        // ticks until the flood is whole
  double noise = 0.1;  // random part of its demand
  bool idle = false;   // bursts of its own: no demand in half of the time
  bool is_machine = false;
  bool reads = false;    // it waits for each of its requests to a disk, however fast that is
  double request = 1e6;  // bytes of one request of its own to a disk
};

struct Plan {
  std::vector<Actor> actors;
  int onset = 0;
  double slow = 1;        // capacity factor of the device from the onset on
  double capacity = 1e9;  // total capacity, in bytes per second of endless requests
  double cost = 0;        // cost of one request besides its bytes, in bytes
  Resource resource = Resource::disk;
};

struct Run {
  std::vector<Sample> samples;
  std::vector<double>
      lacked;  // for each actor, after the onset: the part of its demand that it did not get
  std::vector<double> limited;  // likewise, because of its own limit
};

proto::AttemptKey key_of(std::size_t actor) {
  return {JobId(100 + static_cast<std::uint64_t>(actor)), Attempt(1)};
}

double wanted(const Actor& a, int tick, int onset, std::mt19937_64& random) {
  std::lognormal_distribution<double> around(0, a.noise);
  double want = a.usual * around(random);
  if (a.idle && (tick / 40) % 2 == 1) want = 0;
  if (tick < onset || a.flood == 0) return want;
  const int since = tick - onset;
  if (a.burst > 0 && (since / a.burst) % 2 == 1) return want;
  const double whole = a.ramp > 0 ? std::min(1.0, static_cast<double>(since) / a.ramp) : 1.0;
  return want + whole * a.flood * around(random);
}

// The kernel's counters, in seconds and parts of the resource.
struct Counts {
  std::vector<double> used, stalled, throttled;
  double total = 0, busy = 0, stalled_node = 0;
};

Duration of_seconds(double seconds) {
  return Duration{static_cast<std::int64_t>(seconds * 1e6)};
}

JobCount count_of_job(const Plan& plan, const Counts& c, std::size_t i) {
  JobCount job;
  job.key = key_of(i);
  const double request = plan.actors[i].request;
  const bool disk = plan.resource == Resource::disk;
  const double of_bytes = disk ? request / (request + plan.cost) : 1.0;
  const auto moved = static_cast<std::uint64_t>(c.used[i] * plan.capacity * of_bytes);
  const auto limit = static_cast<std::uint64_t>(plan.actors[i].limit * plan.capacity);
  switch (plan.resource) {
    case Resource::disk:
      job.stalled.emplace().io = of_seconds(c.stalled[i]);
      job.disks = {{"nvme0n1", moved,
                    static_cast<std::uint64_t>(static_cast<double>(moved) / request),
                    static_cast<std::uint64_t>(static_cast<double>(limit) * of_bytes)}};
      break;
    case Resource::network:
      job.network_out = moved;
      job.network_limit = limit;
      break;
    case Resource::memory_traffic: job.memory_traffic = moved; break;
    default:
      job.stalled.emplace().cpu = of_seconds(c.stalled[i]);
      job.cpu = of_seconds(c.used[i] * 16);
      job.throttled = of_seconds(c.throttled[i]);
  }
  return job;
}

Sample sample_of(const Plan& plan, const Counts& c, int tick) {
  Sample s;
  s.at = Instant{1'000'000'000} + milliseconds(tick * kTick);
  s.cpus = 16;
  auto bytes = static_cast<std::uint64_t>(c.total * plan.capacity);
  std::uint64_t operations = 0;
  const auto most = static_cast<std::uint64_t>(plan.capacity);
  switch (plan.resource) {
    case Resource::disk:
      bytes = 0;
      for (std::size_t i = 0; i < plan.actors.size(); ++i) {
        const DiskUse use = count_of_job(plan, c, i).disks[0];
        bytes += use.bytes;
        operations += use.operations;
      }
      s.disks = {{"nvme0n1", of_seconds(c.busy), bytes, operations}};
      s.stalled.emplace().io = of_seconds(c.stalled_node);
      break;
    case Resource::network: s.links = {{"eth0", Direction::out, bytes, 0, most}}; break;
    case Resource::memory_traffic:
      s.memory_traffic = bytes;
      s.memory_traffic_most = most;
      break;
    default: s.cpu = of_seconds(c.total * 16); s.stalled.emplace().cpu = of_seconds(c.stalled_node);
  }
  for (std::size_t i = 0; i < plan.actors.size(); ++i)
    if (!plan.actors[i].is_machine) s.jobs.push_back(count_of_job(plan, c, i));
  return s;
}

// All get the same part of their demand, as in the queue of a disk or of a link.
Run run(const Plan& plan, std::uint64_t seed) {
  constexpr double kSecondsOfTick = kTick / 1000.0;
  const std::size_t n = plan.actors.size();
  Run out{{}, std::vector<double>(n, 0), std::vector<double>(n, 0)};
  Counts c{std::vector<double>(n, 0), std::vector<double>(n, 0), std::vector<double>(n, 0)};
  std::vector<std::mt19937_64> random;
  for (std::size_t i = 0; i < n; ++i) random.emplace_back(seed * 1000 + i);
  std::mt19937_64 own(seed * 1000 + 999);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int tick = 0; tick <= kTicks; ++tick) {
    if (tick % kTicksOfSample == 0) out.samples.push_back(sample_of(plan, c, tick));
    std::vector<double> want(n), at_limit(n, 0);
    double all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double limit = plan.actors[i].limit;
      want[i] = wanted(plan.actors[i], tick, plan.onset, random[i]);
      if (limit > 0 && want[i] > limit) {
        at_limit[i] = 1 - limit / want[i];
        want[i] = limit;
      }
      all += want[i];
    }
    const double room = tick >= plan.onset ? plan.slow : 1.0;
    const double part = all > room ? room / all : 1.0;
    bool anybody = false;
    for (std::size_t i = 0; i < n; ++i) {
      // Work that is not done at once is waited for; a short queue is there at any load.
      const double lack = want[i] > 0 ? 1 - part : 0;
      double waits = std::min(1.0, lack * 1.3 + 0.04 * unit(own) + at_limit[i]);
      if (plan.actors[i].reads && plan.resource == Resource::disk && want[i] > 0)
        waits = std::max(waits, 0.8 + 0.15 * unit(own));
      c.used[i] += want[i] * part * kSecondsOfTick;
      c.stalled[i] += waits * kSecondsOfTick;
      c.throttled[i] += at_limit[i] * kSecondsOfTick;
      anybody = anybody || waits > 0.1;
      if (tick < plan.onset) continue;
      out.lacked[i] += lack / (kTicks - plan.onset + 1);
      out.limited[i] += at_limit[i] / (kTicks - plan.onset + 1);
    }
    c.total += all * part * kSecondsOfTick;
    c.stalled_node += (anybody ? 1.0 : 0.05) * kSecondsOfTick;
    c.busy += std::min(1.0, all / room * (0.97 + 0.06 * unit(own))) * kSecondsOfTick;
  }
  return out;
}

Actor job(double usual, std::mt19937_64& random) {
  std::uniform_real_distribution<double> noise(0.05, 0.3);
  std::uniform_real_distribution<double> size(12, 20);  // 4 KiB to 1 MiB
  Actor a;
  a.request = std::exp2(size(random));
  a.usual = usual;
  a.noise = noise(random);
  return a;
}

// The first actors are those of the kind; some with little demand follow.
Plan plan_of(const Scenario& s) {
  std::mt19937_64 random(s.seed);
  const auto between = [&](double a, double b) {
    return std::uniform_real_distribution<double>(a, b)(random);
  };
  Plan p;
  p.resource = s.resource;
  p.onset = static_cast<int>(between(400, 800));
  const auto add = [&](double usual) -> Actor& {
    return p.actors.emplace_back(job(usual, random));
  };
  const double flood = between(1.2, 3.0);
  switch (s.kind) {
    case Kind::flood: add(between(0, 0.1)).flood = flood; break;
    case Kind::two_floods:
      add(between(0, 0.05)).flood = flood;
      add(between(0, 0.05)).flood = flood * between(0.8, 1.2);
      break;
    case Kind::bursts:
      add(0.02).flood = flood * 1.3;
      p.actors.back().burst = static_cast<int>(between(70, 120));
      break;
    case Kind::ramp:
      add(0.05).flood = flood;
      p.actors.back().ramp = static_cast<int>(between(30, 60));
      break;
    case Kind::beside_a_heavy:
      add(0.02).flood = flood;
      add(between(0.2, 0.3));
      break;
    case Kind::machine:
      add(0.01).flood = flood * 1.5;
      p.actors.back().is_machine = true;
      break;
    case Kind::slow_device: p.slow = between(0.1, 0.2); break;
    case Kind::own_limit:
    case Kind::flood_and_limit:
      add(between(0.02, 0.05)).flood = between(0.3, 0.5);
      p.actors.back().limit = between(0.06, 0.1);
      if (s.kind == Kind::flood_and_limit) add(0.02).flood = flood;
      break;
    case Kind::own_flood: add(0.05).flood = flood; break;
    case Kind::idle_neighbours: break;
    case Kind::busy_and_well:
      for (int i = 0; i < 3; ++i) add(between(0.22, 0.25)).noise = 0.05;
      break;
  }
  const bool alone = s.kind == Kind::own_flood;
  const bool calm = s.kind == Kind::busy_and_well;
  p.cost = between(8e3, 64e3);
  // One that begins to do a little more at the same time, by chance.
  if (!alone && !calm && s.kind != Kind::idle_neighbours && between(0, 1) < 0.4)
    add(0.01).flood = between(0.03, 0.08);
  const int others = static_cast<int>(between(2, 8));
  for (int i = 0; i < others; ++i) {
    const double usual = alone || calm ? 0.005 : i < 2 ? between(0.15, 0.25) : between(0.01, 0.05);
    Actor& other = add(usual);
    other.idle = between(0, 1) < 0.3 && i >= 2;
    other.reads = between(0, 1) < 0.3;
  }
  return p;
}

}  // namespace

Story play(const Scenario& scenario) {
  const Plan plan = plan_of(scenario);
  const std::size_t n = plan.actors.size();
  Story story;
  Run whole = run(plan, scenario.seed);
  story.onset = Instant{1'000'000'000} + milliseconds(plan.onset * kTick);
  // The same machine without any flood, and with one flood only.
  const auto with_flood_of = [&](std::size_t only) {
    Plan other = plan;
    other.slow = 1;
    for (std::size_t i = 0; i < n; ++i)
      if (i != only && plan.actors[i].limit == 0) other.actors[i].flood = 0;
    return run(other, scenario.seed);
  };
  const Run calm = with_flood_of(n);
  std::map<std::size_t, Run> with;
  for (std::size_t i = 0; i < n; ++i)
    if (plan.actors[i].flood > 0 && plan.actors[i].limit == 0) with.emplace(i, with_flood_of(i));
  std::erase_if(with, [&](const auto& one) {  // too little to hold anybody up
    return std::none_of(one.second.lacked.begin(), one.second.lacked.end(),
                        [](double lack) { return lack >= 0.2; });
  });
  const bool waiting_is_counted = plan.resource == Resource::disk || plan.resource == Resource::cpu;
  for (std::size_t i = 0; i < n; ++i) {
    const Actor& a = plan.actors[i];
    if (a.is_machine) continue;
    const double harm = whole.lacked[i] - calm.lacked[i];
    const double clear = a.limit > 0 ? 1 : 0.35;
    Truth t{key_of(i), Cause::unknown, {}};
    if (whole.limited[i] >= 0.4 && waiting_is_counted && harm < 0.02)
      t.cause = Cause::itself;
    else if (harm < 0.02 && whole.limited[i] < 0.02)
      continue;
    else if (with.contains(i) && waiting_is_counted)
      t.cause = Cause::itself;
    else if (plan.slow < 1 && harm >= clear && !a.idle)
      t.cause = Cause::unknown;
    else
      for (const auto& [flood, one] : with) {
        if (flood == i || one.lacked[i] - calm.lacked[i] < 0.2) continue;
        t.cause = plan.actors[flood].is_machine ? Cause::machine : Cause::neighbours;
        if (!plan.actors[flood].is_machine) t.culprits.insert(key_of(flood));
      }
    const bool named = t.cause != Cause::unknown || plan.slow < 1;
    const bool enough = t.cause == Cause::itself || harm >= (with.contains(i) ? 1 : 0.25);
    const bool new_use =
        a.flood > 0 && !waiting_is_counted;  // its demand without contention is not known
    if (a.idle || new_use || !named || !enough)
      story.unclear.insert(t.victim);
    else
      story.truths.push_back(std::move(t));
  }
  story.samples = std::move(whole.samples);
  return story;
}

}  // namespace gantry::neighbours::model
