// How many replicas a service needs, by numbers that can be checked by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "common/proto/gate.h"
#include "ctld/scale/erlang.h"
#include "ctld/scale/scale.h"

namespace {

using namespace gantry;
using namespace gantry::scale;

tenancy::Service service() {
  tenancy::Service s;
  s.name = "score";
  s.tenant = "fraud";
  s.target = milliseconds(100);
  s.scale.most = 100;
  s.route.concurrency = 1;
  tenancy::ServiceVersion& v = s.versions.emplace_back();
  v.name = "v1";
  v.command = "serve";
  v.shapes.resize(2);
  return s;
}

// A load and its clock: seconds with a number of requests each.
struct Traffic {
  ServiceLoad load;
  Instant now{hours(24 * 365 * 50).us};
  void pass(std::int64_t seconds_long, std::uint64_t rate, Duration time = milliseconds(20)) {
    for (std::int64_t i = 0; i < seconds_long; ++i) {
      proto::GateSample sample;
      sample.span = seconds(1);
      sample.requests = rate;
      sample.concurrency = rate * static_cast<std::uint64_t>(time.us) / 1000;
      sample.times.resize(kTimeBuckets);
      std::size_t at = 0;
      while (proto::kLatencyBuckets[at] < static_cast<std::uint64_t>(time.us)) ++at;
      sample.times[at] = rate;
      load.add(sample, now);
      now = now + seconds(1);
    }
  }
};

ScaleFacts facts(const Traffic& traffic, Duration service_time = milliseconds(20)) {
  ScaleFacts f;
  f.now = traffic.now;
  f.service_time = service_time;
  f.start_time = seconds(5);
  return f;
}

TEST_CASE("Erlang C is what its tables say") {
  // One server at half load: an arrival waits with probability 1/2 (M/M/1).
  CHECK(erlang_c(1, 0.5) == doctest::Approx(0.5));
  // Two servers with one erlang: 1/3.
  CHECK(erlang_c(2, 1.0) == doctest::Approx(1.0 / 3));
  // From tables of call centres: 10 agents, 8 erlangs.
  CHECK(erlang_c(10, 8.0) == doctest::Approx(0.4092).epsilon(0.001));
  CHECK(erlang_c(3, 4.0) == 1);
  CHECK(erlang_c(3, 0.0) == 0);
}

TEST_CASE("the fewest that keep a promise keep it, and one fewer does not") {
  for (const double rate : {1.0, 10.0, 100.0, 1000.0}) {
    const WaitPromise p{rate, 0.02, 0.075, 0.95};
    const std::uint32_t n = fewest_groups(p, 1, 1000);
    const auto late = [&](std::uint32_t servers) {
      const double free = servers - rate * p.service;
      return free <= 0
                 ? 1.0
                 : erlang_c(servers, rate * p.service) * std::exp(-free * p.budget / p.service);
    };
    CHECK(late(n) <= 0.05);
    if (n > 1) CHECK(late(n - 1) > 0.05);
  }
  CHECK(fewest_groups({1e9, 1, 0.1, 0.95}, 1, 7) == 7);  // never more than it may have
}

TEST_CASE("a service has as many replicas as its promise needs, and says why") {
  const tenancy::Service s = service();
  Traffic traffic;
  traffic.pass(70, 100);
  ScaleMemory memory;
  const ScaleAnswer answer = scale::scale(s, traffic.load, facts(traffic), memory);
  CHECK(answer.replicas == fewest_groups({100, 0.02, 0.075, 0.95}, 1, 100));
  CHECK(
      answer.reason ==
      "100.0 requests a second of 20 ms each, 1 at a time in a replica, so that 95 % are answered "
      "within 100 ms");
}

TEST_CASE("a spike is seen within two seconds, and noise is no spike") {
  const tenancy::Service s = service();
  Traffic traffic;
  traffic.pass(70, 100);
  ScaleMemory memory;
  const std::uint32_t calm = scale::scale(s, traffic.load, facts(traffic), memory).replicas;
  Traffic noisy = traffic;
  noisy.pass(2, 115);  // one and a half standard deviations above the count of a second
  CHECK(scale::scale(s, noisy.load, facts(noisy), memory).replicas == calm);
  traffic.pass(2, 1000);
  CHECK(scale::scale(s, traffic.load, facts(traffic), memory).replicas >= 20);
}

TEST_CASE("replicas leave when fewer were enough for a while") {
  tenancy::Service s = service();
  s.scale.down_after = seconds(30);
  Traffic traffic;
  traffic.pass(70, 300);
  ScaleMemory memory;
  const std::uint32_t many = scale::scale(s, traffic.load, facts(traffic), memory).replicas;
  std::int64_t held = 0;
  for (; held < 200; ++held) {
    traffic.pass(1, 10);
    if (scale::scale(s, traffic.load, facts(traffic), memory).replicas < many) break;
  }
  CHECK(held >= 25);   // the answer of before holds
  CHECK(held <= 100);  // but not forever: the long window is a minute
}

TEST_CASE("to zero when nobody asks, and to one at the first request") {
  tenancy::Service s = service();
  s.scale.least = 0;
  s.scale.idle = seconds(60);
  Traffic traffic;
  ScaleMemory memory;
  CHECK(scale::scale(s, traffic.load, facts(traffic), memory).replicas == 0);
  ScaleFacts held = facts(traffic);
  held.waiting = 1;
  CHECK(scale::scale(s, traffic.load, held, memory).replicas >= 1);
  traffic.pass(10, 1);
  CHECK(scale::scale(s, traffic.load, facts(traffic), memory).replicas == 1);
  traffic.pass(130, 0);
  CHECK(scale::scale(s, traffic.load, facts(traffic), memory).replicas == 0);
}

TEST_CASE("bounds, hours, a spare node and a budget") {
  tenancy::Service s = service();
  s.scale.least = 2;
  s.scale.most = 5;
  Traffic traffic;
  traffic.pass(70, 1000);
  ScaleMemory memory;
  CHECK(scale::scale(s, traffic.load, facts(traffic), memory).replicas == 5);
  s.scale.most = 100;
  s.scale.budget = Money{10'000'000};
  ScaleFacts paid = facts(traffic);
  paid.cost = Money{1'000'000};
  ScaleAnswer answer = scale::scale(s, traffic.load, paid, memory);
  CHECK(answer.replicas == 10);
  CHECK(answer.reason.starts_with("its budget pays for 10"));
  s.scale.budget.reset();
  Traffic quiet;
  ScaleMemory fresh;
  CHECK(scale::scale(s, quiet.load, facts(quiet), fresh).replicas == 2);
  s.scale.hours.push_back({"night", {}, "22:00", "06:00", 7});
  ScaleFacts night = facts(quiet);
  night.local_minute = 23 * 60;
  CHECK(scale::scale(s, quiet.load, night, fresh).replicas == 7);
  night.local_minute = 12 * 60;
  CHECK(scale::scale(s, quiet.load, night, fresh).replicas == 2);
  s.scale.spare_node = true;
  ScaleFacts spread = facts(traffic);
  spread.on_one_node = 4;
  ScaleMemory again;
  const std::uint32_t with = scale::scale(s, traffic.load, spread, again).replicas;
  s.scale.spare_node = false;
  CHECK(with == scale::scale(s, traffic.load, spread, again).replicas + 4);
}

TEST_CASE("a larger shape is taken when no number of replicas keeps the promise") {
  const tenancy::Service s = service();
  Traffic traffic;
  ScaleMemory memory;
  std::uint32_t shape = 0;
  for (int i = 0; i < 70; ++i) {
    traffic.pass(1, 10, milliseconds(120));
    ScaleFacts f = facts(traffic, milliseconds(120));
    f.shape = shape;
    shape = scale::scale(s, traffic.load, f, memory).shape;
    if (i < 50) CHECK(shape == 0);
  }
  CHECK(shape == 1);
}

TEST_CASE("the same minutes of the day before bring replicas in time, and take none away") {
  tenancy::Service s = service();
  s.scale.forecast = true;
  Traffic traffic;
  traffic.pass(120, 10);
  traffic.pass(600, 500);  // ten minutes of much
  const Instant before = traffic.now;
  traffic.pass(24 * 3600 - 720, 10);
  ScaleMemory memory;
  traffic.pass(60, 10);  // a minute and a half before the same time of the next day
  CHECK(traffic.now > before);
  const ScaleAnswer answer = scale::scale(s, traffic.load, facts(traffic), memory);
  CHECK(answer.replicas == fewest_groups({500, 0.02, 0.075, 0.95}, 1, 100));
  CHECK(answer.reason.find("in the same minutes of earlier days") != std::string::npos);
}

TEST_CASE("a load that begins anew knows earlier days by their history") {
  Traffic traffic;
  traffic.pass(120, 10);
  traffic.pass(600, 500);
  traffic.pass(24 * 3600 - 1200, 10);
  const auto span = static_cast<std::uint64_t>(traffic.now.us / scale::kHistorySpan.us);
  std::vector<std::uint32_t> history(scale::kHistory);
  for (std::uint64_t at = span - 200; at < span; ++at)
    history[at % scale::kHistory] = traffic.load.most_of_span(at).value_or(0);
  CHECK_FALSE(traffic.load.most_of_span(span + 1));
  CHECK(*std::max_element(history.begin(), history.end()) == 500 * 60);

  ServiceLoad fresh;
  CHECK_FALSE(fresh.same_minutes(0, 10, traffic.now));
  fresh.remember(history, span - 1);
  const auto known = fresh.same_minutes(0, 10, traffic.now);
  REQUIRE(known);
  CHECK(*known == 500);
  // Its own measurements count more than the history.
  traffic.load = {};
  traffic.pass(120, 7);
  traffic.load.remember(history, span - 1);
  CHECK(traffic.load.most_of_span(
            static_cast<std::uint64_t>(traffic.now.us / scale::kHistorySpan.us)) == 7 * 60);
  CHECK(traffic.load.same_minutes(0, 10, traffic.now).value_or(0) == 500);
}

TEST_CASE("minutes are judged by what was answered in time, and refusals break the promise") {
  ServiceLoad load;
  Instant now{hours(24 * 365 * 50).us};
  const auto minute = [&](std::uint64_t fast, std::uint64_t slow, std::uint64_t refused) {
    proto::GateSample sample;
    sample.span = seconds(1);
    sample.requests = fast + slow;
    sample.refused = refused;
    sample.times.resize(kTimeBuckets);
    sample.times[5] = fast;
    sample.times[45] = slow;
    load.judge(milliseconds(100), 95, now);
    load.add(sample, now);
    now = now + seconds(60);
  };
  minute(100, 0, 0);
  minute(95, 5, 0);
  minute(94, 6, 0);
  minute(100, 0, 6);
  minute(0, 0, 0);
  load.judge(milliseconds(100), 95, now);
  CHECK(load.minutes() == 4);  // the one without requests is no minute
  CHECK(load.minutes_kept() == 2);
}

}  // namespace
