// 100 services of three classes under generated traffic: how often the objective is met, and with
// how many replicas. The shipped autoscaler and planner (in the shipped core, with nodes that take
// a while to start a replica), beside Kubernetes' rule for horizontal pod autoscalers on the same
// requests, and beside a plan made in hindsight: the fewest replicas in each minute that keep the
// promise.
//
//   bench_services [--services N] [--hours H] [--warm H] [--start S] [--seed N] [--day H]
//                  [--policies gantry,hpa50,hpa70]
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "common/proto/gate.h"
#include "tests/services/cluster.h"
#include "traffic.h"

using namespace gantry;
using namespace gantry::bench;
using gantry::services_test::Cluster;
using gantry::services_test::ClusterSize;

namespace {

struct Options {
  std::uint32_t services = 100;
  double hours = 6;
  double warm = 0.1;  // hours that come before and are not counted
  double start = 8;   // seconds from the order until a replica is ready
  double day = 6;     // hours
  std::uint64_t seed = 1;
  std::string policies = "gantry,hpa50,hpa70";
};

struct Score {
  std::uint64_t minutes = 0, kept = 0;
  std::uint64_t requests = 0, late = 0;
  double replica_seconds = 0;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> by_class;  // minutes, kept
};

std::string class_of(const Demand& d) {
  return fmt::format("{:.0f} ms", d.target * 1000);
}

// Counts minutes of one service.
class Minutes {
 public:
  void add(const SecondResult& r) {
    requests_ += r.requests;
    kept_ += r.kept;
  }
  void close(const Demand& demand, Score& score) {
    if (requests_ > 0) {
      const bool kept = static_cast<double>(kept_) >= kPercentile * static_cast<double>(requests_);
      ++score.minutes;
      score.kept += kept ? 1 : 0;
      score.requests += requests_;
      score.late += requests_ - kept_;
      auto& [all, good] = score.by_class[class_of(demand)];
      ++all;
      good += kept ? 1 : 0;
    }
    requests_ = kept_ = 0;
  }

 private:
  std::uint64_t requests_ = 0, kept_ = 0;
};

// In hindsight: the fewest replicas, the same for a whole minute, with which the minute meets the
// objective, given what waited from the minute before.
void run_hindsight(const Options& o, const std::vector<Demand>& demands, Score& score) {
  const auto from = static_cast<std::int64_t>(o.warm * 60);
  const auto until = static_cast<std::int64_t>((o.warm + o.hours) * 60);
  for (const Demand& d : demands) {
    Queue queue;
    for (std::int64_t minute = from; minute < until; ++minute) {
      std::vector<std::vector<Request>> seconds;
      double load = 0;
      for (std::int64_t s = minute * 60; s < minute * 60 + 60; ++s) {
        seconds.push_back(requests_of(d, s));
        for (const Request& r : seconds.back()) load += r.needs;
      }
      auto n = static_cast<std::size_t>(std::max(1.0, std::ceil(load / 60)));
      for (;; ++n) {
        Queue trial = queue;
        trial.resize(n, static_cast<double>(minute * 60));
        Minutes count;
        Score one;
        for (std::int64_t s = 0; s < 60; ++s)
          count.add(trial.run(seconds[static_cast<std::size_t>(s)], minute * 60 + s, d.target));
        count.close(d, one);
        if (one.kept < one.minutes) continue;
        queue = std::move(trial);
        score.minutes += one.minutes;
        score.kept += one.kept;
        score.requests += one.requests;
        score.late += one.late;
        auto& [all, good] = score.by_class[class_of(d)];
        all += one.minutes;
        good += one.kept;
        break;
      }
      score.replica_seconds += 60.0 * static_cast<double>(n);
    }
  }
}

// Kubernetes' rule (kubernetes.io, "Horizontal Pod Autoscaling", 1.30, defaults): every 15 s the
// replicas times use over target, rounded up, unless within 10 %; up by at most 4 or the double in
// 15 s; down to the largest answer of the last 300 s. Use is that of the last 15 s, as the metrics
// server has it.
class PodAutoscaler {
 public:
  PodAutoscaler(double target, double start) : target_(target), start_(start) {}
  // Returns the replicas that are ready in this second.
  std::size_t second(std::int64_t now) {
    std::erase_if(coming_, [&](const std::pair<double, std::size_t>& c) {
      if (c.first > static_cast<double>(now)) return false;
      ready_ += c.second;
      return true;
    });
    return ready_;
  }
  [[nodiscard]] std::size_t held() const {
    std::size_t n = ready_;
    for (const auto& [at, count] : coming_) n += count;
    return n;
  }
  void note(double busy, std::int64_t now) {
    busy_ += busy;
    if (now % 15 != 14) return;
    const double use = busy_ / 15 / static_cast<double>(std::max<std::size_t>(1, ready_));
    busy_ = 0;
    const std::size_t current = held();
    auto wanted = current;
    if (std::abs(use / target_ - 1) > 0.1)
      wanted = static_cast<std::size_t>(
          std::ceil(static_cast<double>(ready_) * std::min(use, 1.0) / target_ - 1e-9));
    wanted = std::max<std::size_t>(1, wanted);
    answers_.emplace_back(now, wanted);
    std::erase_if(answers_, [&](const auto& a) { return a.first + 300 <= now; });
    if (wanted > current) {
      wanted = std::min(wanted, std::max(current + 4, current * 2));
      coming_.emplace_back(static_cast<double>(now) + start_, wanted - current);
      return;
    }
    std::size_t most = 0;
    for (const auto& [at, n] : answers_) most = std::max(most, n);
    if (most < current && coming_.empty()) ready_ = std::min(ready_, most);
  }
  void begin_with(std::size_t n) { ready_ = n; }

 private:
  double target_, start_, busy_ = 0;
  std::size_t ready_ = 1;
  std::vector<std::pair<double, std::size_t>> coming_;
  std::vector<std::pair<std::int64_t, std::size_t>> answers_;
};

void run_hpa(const Options& o, const std::vector<Demand>& demands, double target, Score& score) {
  const auto from = static_cast<std::int64_t>(o.warm * 3600);
  const auto until = static_cast<std::int64_t>((o.warm + o.hours) * 3600);
  for (const Demand& d : demands) {
    Queue queue;
    PodAutoscaler scaler(target, o.start);
    scaler.begin_with(static_cast<std::size_t>(std::ceil(d.rate_at(0) * d.service / target)));
    Minutes minutes;
    for (std::int64_t s = 0; s < until; ++s) {
      queue.resize(scaler.second(s), static_cast<double>(s));
      const SecondResult r = queue.run(requests_of(d, s), s, d.target);
      // Replicas that have a backlog are busy all the time.
      const double most = static_cast<double>(queue.size());
      scaler.note(queue.backlog(static_cast<double>(s + 1)) > 0 ? most : std::min(r.busy, most), s);
      if (s < from) continue;
      score.replica_seconds += static_cast<double>(scaler.held());
      minutes.add(r);
      if (s % 60 == 59) minutes.close(d, score);
    }
  }
}

std::vector<tenancy::Document> documents_of(const std::vector<Demand>& demands, const Options& o) {
  std::vector<tenancy::Document> out;
  tenancy::Tenant tenant;
  tenant.name = "serve";
  tenant.grants.push_back({tenancy::Role::tenant_admin, "owner", {}});
  out.emplace_back(tenant);
  for (const Demand& d : demands) {
    tenancy::Service s;
    s.name = d.name;
    s.tenant = "serve";
    s.target = microseconds(static_cast<std::int64_t>(d.target * 1e6));
    s.percentile = 95;
    s.drain = seconds(5);
    s.startup = seconds(static_cast<std::int64_t>(o.start) + 60);
    s.route.concurrency = 1;
    s.scale.least = 1;
    s.scale.most = 500;
    s.scale.forecast = true;
    tenancy::ServiceVersion& v = s.versions.emplace_back();
    v.name = "v1";
    v.command = "serve";
    tenancy::ServiceShape& shape = v.shapes.emplace_back();
    shape.name = "small";
    shape.memory = 64 << 20;
    shape.service_time = microseconds(static_cast<std::int64_t>(d.service * 1e6));
    out.emplace_back(std::move(s));
  }
  return out;
}

void run_gantry(const Options& o, const std::vector<Demand>& demands, const ClusterSize& size,
                Score& score) {
  Cluster cluster(size, documents_of(demands, o));
  std::vector<Queue> queues(demands.size());
  std::vector<Minutes> minutes(demands.size());
  const auto from = static_cast<std::int64_t>(o.warm * 3600);
  const auto until = static_cast<std::int64_t>((o.warm + o.hours) * 3600);
  for (std::int64_t s = 0; s < until; ++s) {
    const auto ready = cluster.ready();
    std::vector<proto::GateSample> samples;
    std::map<std::string, Duration> times;
    for (std::size_t i = 0; i < demands.size(); ++i) {
      const Demand& d = demands[i];
      const auto n = ready.find(d.name);
      queues[i].resize(n == ready.end() ? 0 : n->second, static_cast<double>(s));
      const SecondResult r = queues[i].run(requests_of(d, s), s, d.target);
      if (s >= from) {
        minutes[i].add(r);
        if (s % 60 == 59) minutes[i].close(d, score);
      }
      proto::GateSample& sample = samples.emplace_back();
      sample.tenant = "serve";
      sample.service = d.name;
      sample.version = "v1.1";
      sample.span = seconds(1);
      sample.requests = r.requests;
      sample.waiting = static_cast<std::uint32_t>(r.waiting);
      sample.concurrency = static_cast<std::uint64_t>(r.response * 1000);
      sample.times = r.times;
      if (r.requests > 0)
        times[d.name] = microseconds(static_cast<std::int64_t>(r.busy / double(r.requests) * 1e6));
    }
    cluster.second(std::move(samples), times);
    if (s < from) continue;
    for (const auto& [name, n] : cluster.held()) score.replica_seconds += n;
  }
}

void print(std::string_view name, const Score& s, const Score& best) {
  fmt::print("{:<22}{:>10.2f}{:>12.2f}{:>12.1f}{:>10.2f}", name,
             100.0 * static_cast<double>(s.kept) / static_cast<double>(s.minutes),
             100.0 * (1 - static_cast<double>(s.late) / static_cast<double>(s.requests)),
             s.replica_seconds / 3600, s.replica_seconds / best.replica_seconds);
  for (const auto& [name_of, counts] : s.by_class)
    fmt::print("  {} {:.2f}", name_of,
               100.0 * static_cast<double>(counts.second) / static_cast<double>(counts.first));
  fmt::print("\n");
}

double number(const char* text) {
  return std::strtod(text, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--services")
      o.services = static_cast<std::uint32_t>(number(argv[i + 1]));
    else if (name == "--hours")
      o.hours = number(argv[i + 1]);
    else if (name == "--warm")
      o.warm = number(argv[i + 1]);
    else if (name == "--start")
      o.start = number(argv[i + 1]);
    else if (name == "--day")
      o.day = number(argv[i + 1]);
    else if (name == "--seed")
      o.seed = static_cast<std::uint64_t>(number(argv[i + 1]));
    else if (name == "--policies")
      o.policies = argv[i + 1];
    else {
      fmt::print(stderr, "bench_services: there is no option {}\n", name);
      return 2;
    }
  }
  const auto demands = make_demands(o.services, o.seed, o.day * 3600);
  Score best;
  run_hindsight(o, demands, best);
  const double average = best.replica_seconds / 3600 / o.hours;
  // The plan of hindsight fills 70 % of the cluster on average.
  const ClusterSize size{static_cast<std::uint32_t>(std::ceil(average / 0.7 / 16)), 16, false,
                         microseconds(static_cast<std::int64_t>(o.start * 1e6))};
  fmt::print(
      "{} services, {} hours of traffic (a day has {}), {} requests; a replica starts in {} "
      "s; {} nodes of 16 cores\n\n",
      o.services, o.hours, o.day, best.requests, o.start, size.nodes);
  fmt::print("{:<22}{:>10}{:>12}{:>12}{:>10}  minutes kept by class, %\n", "policy", "minutes %",
             "in time %", "replica h", "to best");
  print("in hindsight", best, best);
  if (o.policies.find("gantry") != std::string::npos) {
    Score score;
    run_gantry(o, demands, size, score);
    print("gantry", score, best);
  }
  for (const int target : {50, 70})
    if (o.policies.find(fmt::format("hpa{}", target)) != std::string::npos) {
      Score score;
      run_hpa(o, demands, target / 100.0, score);
      print(fmt::format("HPA, {} % use", target), score, best);
    }
  return 0;
}
