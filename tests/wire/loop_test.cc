// The event loop with real descriptors, timers, signals and processes, and the cluster clock with
// injected system clocks.
#include <doctest/doctest.h>

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

#include "common/loop/clock.h"
#include "common/loop/loop.h"
#include "common/net/client.h"
#include "common/net/router.h"

namespace gantry::loop {
namespace {

using std::chrono::steady_clock;

// Ends a loop that hangs, so that a broken test fails instead of waiting for ever.
Watch guard(Loop& loop) {
  return loop.after(seconds(20), [&loop] {
    FAIL_CHECK("the loop did not end by itself");
    loop.stop();
  });
}

struct Pair {
  int fd[2];
  Pair() { REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) == 0); }
  ~Pair() {
    close(fd[0]);
    close(fd[1]);
  }
};

pid_t spawn(void (*body)()) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  return pid;
}

TEST_CASE("a readable descriptor is reported once a turn, as long as it stays readable") {
  Loop loop;
  const Watch limit = guard(loop);
  const Pair pair;
  REQUIRE(write(pair.fd[1], "abc", 3) == 3);
  int calls = 0;
  int turns = 0;
  const Watch ends = loop.at_end_of_turn([&] { ++turns; });
  const Watch reader = loop.on_readable(pair.fd[0], [&] {
    char c = 0;
    // One of three bytes is read, so the descriptor stays readable.
    CHECK(read(pair.fd[0], &c, 1) == 1);
    CHECK(c == "abc"[calls]);
    if (++calls == 3) loop.stop();
  });
  loop.run();
  CHECK(calls == 3);
  CHECK(turns >= 3);
}

TEST_CASE("an always writable descriptor does not keep timers from their turn") {
  Loop loop;
  const Watch limit = guard(loop);
  const Pair pair;
  int writable = 0;
  int fired = 0;
  const Watch writer = loop.on_writable(pair.fd[1], [&] { ++writable; });
  const Watch timer = loop.every(milliseconds(1), [&] {
    if (++fired == 3) loop.stop();
  });
  loop.run();
  CHECK(writable > 3);
}

TEST_CASE("one descriptor is watched for reading and writing, and the peer's close is seen") {
  Loop loop;
  const Watch limit = guard(loop);
  auto pair = std::make_unique<Pair>();
  bool wrote = false;
  bool ended = false;
  Watch writer = loop.on_writable(pair->fd[0], [&] {
    wrote = true;
    writer.cancel();  // The watch is cancelled inside its own handler.
    close(pair->fd[1]);
  });
  const Watch reader = loop.on_readable(pair->fd[0], [&] {
    char c = 0;
    ended = read(pair->fd[0], &c, 1) == 0;
    loop.stop();
  });
  loop.run();
  CHECK(wrote);
  CHECK(ended);
  pair->fd[1] = dup(pair->fd[0]);  // Both ends need a descriptor, as Pair closes both.
}

TEST_CASE("a cancelled watch stays silent, even if it was ready in the same turn") {
  Loop loop;
  const Watch limit = guard(loop);
  const Pair a;
  const Pair b;
  REQUIRE(write(a.fd[1], "x", 1) == 1);
  REQUIRE(write(b.fd[1], "x", 1) == 1);
  int calls = 0;
  Watch first;
  Watch second;
  first = loop.on_readable(a.fd[0], [&] {
    ++calls;
    second.cancel();
    first.cancel();
  });
  second = loop.on_readable(b.fd[0], [&] {
    ++calls;
    first.cancel();
    second.cancel();
  });
  const Watch end = loop.after(milliseconds(5), [&] { loop.stop(); });
  loop.run();
  CHECK(calls == 1);
}

TEST_CASE("timers fire in order, once or repeatedly, and never after they are cancelled") {
  Loop loop;
  const Watch limit = guard(loop);
  std::string order;
  const Watch late = loop.after(milliseconds(6), [&] { order += 'c'; });
  const Watch early = loop.after(milliseconds(2), [&] { order += 'b'; });
  const Watch now = loop.after(Duration{-5}, [&] { order += 'a'; });
  Watch never = loop.after(milliseconds(3), [&] { order += '!'; });
  never.cancel();
  {
    const Watch gone = loop.after(milliseconds(3), [&] { order += '?'; });
  }
  int ticks = 0;
  Watch tick;
  tick = loop.every(milliseconds(10), [&] {
    if (++ticks < 3) return;
    tick = Watch();  // The timer ends itself.
    loop.stop();
  });
  loop.run();
  CHECK(order == "abc");
  CHECK(ticks == 3);
}

TEST_CASE("a posted function runs in a later turn, also if another thread posted it") {
  Loop loop;
  const Watch limit = guard(loop);
  int turns = 0;
  int posted_in = -1;
  int ran_in = -1;
  const Watch ends = loop.at_end_of_turn([&] { ++turns; });
  std::thread other;
  const Watch begin = loop.after(Duration{}, [&] {
    other = std::thread([&] {
      loop.post([&] {
        posted_in = turns;
        loop.post([&] {
          ran_in = turns;
          loop.stop();
        });
      });
    });
  });
  loop.run();
  other.join();
  CHECK(posted_in >= 0);
  CHECK(ran_in > posted_in);
}

TEST_CASE("functions posted by many threads all run") {
  Loop loop;
  const Watch limit = guard(loop);
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i)
        loop.post([&] {
          if (++count == kThreads * kEach) loop.stop();
        });
    });
  loop.run();
  for (auto& t : threads) t.join();
  CHECK(count == kThreads * kEach);
}

TEST_CASE("signals reach their handlers") {
  Loop loop;
  const Watch limit = guard(loop);
  int usr1 = 0;
  const Watch watch = loop.on_signal(SIGUSR1, [&] {
    if (++usr1 == 2) return loop.stop();
    REQUIRE(kill(getpid(), SIGUSR1) == 0);
  });
  const Watch begin = loop.after(Duration{}, [] { kill(getpid(), SIGUSR1); });
  loop.run();
  CHECK(usr1 == 2);
}

TEST_CASE("the end of a process is reported, with its status if it is a child") {
  Loop loop;
  const Watch limit = guard(loop);
  int pending = 3;
  const auto done = [&] {
    if (--pending == 0) loop.stop();
  };
  const pid_t exits = spawn([] { _exit(7); });
  const pid_t dies = spawn([] { raise(SIGKILL); });
  // The grandchild's parent has ended, so this process cannot reap it.
  int report[2];
  REQUIRE(pipe(report) == 0);
  int hold[2];
  REQUIRE(pipe(hold) == 0);
  const pid_t middle = fork();
  if (middle == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      close(hold[1]);
      char c = 0;
      (void)!read(hold[0], &c, 1);  // The grandchild waits until the test closes the pipe.
      _exit(3);
    }
    (void)!write(report[1], &grandchild, sizeof grandchild);
    _exit(0);
  }
  pid_t orphan = 0;
  REQUIRE(read(report[0], &orphan, sizeof orphan) == sizeof orphan);
  waitpid(middle, nullptr, 0);

  const auto a = loop.on_process_end(exits, [&](ProcessEnd end) {
    CHECK(end.status == ExitStatus{.code = 7, .signal = 0});
    done();
  });
  const auto b = loop.on_process_end(dies, [&](ProcessEnd end) {
    CHECK(end.status == ExitStatus{.code = 0, .signal = SIGKILL});
    done();
  });
  const auto c = loop.on_process_end(orphan, [&](ProcessEnd end) {
    CHECK_FALSE(end.status.has_value());
    done();
  });
  REQUIRE(a);
  REQUIRE(b);
  REQUIRE(c);
  close(hold[1]);
  loop.run();
  CHECK(pending == 0);
  for (const int fd : {report[0], report[1], hold[0]}) close(fd);
  CHECK(loop.on_process_end(exits, [](ProcessEnd) {}).error().code == ErrorCode::not_found);
}

// A queue whose descriptor shows nothing although a message is there. ZeroMQ's queues can be so.
struct QuietQueue final : QueueSource {
  Pair pair;
  int messages = 0;
  [[nodiscard]] int descriptor() const override { return pair.fd[0]; }
  [[nodiscard]] bool readable() override { return messages > 0; }
};

TEST_CASE("a queue is drained by budget, and messages that appear at the end of a turn are taken") {
  Loop loop;
  const Watch limit = guard(loop);
  QuietQueue queue;
  queue.messages = kQueueBudget + 10;
  int taken = 0;
  std::vector<int> taken_by_turn;
  const Watch watch = loop.add_queue(queue, [&] {
    if (queue.messages == 0) return false;
    --queue.messages;
    ++taken;
    return true;
  });
  int refills = 3;
  const Watch ends = loop.at_end_of_turn([&] {
    taken_by_turn.push_back(taken);
    if (queue.messages > 0) return;
    if (refills-- > 0)
      queue.messages = 1;  // Sending may notice that a message has arrived; this imitates it.
    else
      loop.stop();
  });
  loop.run();
  CHECK(taken == kQueueBudget + 10 + 3);
  CHECK(taken_by_turn.at(0) == kQueueBudget);
  CHECK(taken_by_turn.at(1) == kQueueBudget + 10);
}

TEST_CASE("a message reaches its handler, and the reply is sent at the end of the turn") {
  Loop loop;
  const Watch limit = guard(loop);
  const net::KeyPair keys = net::generate_key_pair();
  auto router = net::Router::open({.endpoints = {"tcp://127.0.0.1:0"}, .keys = keys});
  REQUIRE(router);
  std::vector<net::Incoming> inbox;
  const Watch queue = loop.add_queue(*router, [&] {
    auto message = router->receive();
    if (message) inbox.push_back(std::move(*message));
    return message.has_value();
  });
  const Watch ends = loop.at_end_of_turn([&] {
    for (const net::Incoming& m : inbox) (void)router->send(m.peer, m.header, m.body);
    inbox.clear();
  });
  std::vector<double> trips;
  std::thread asker([&] {
    auto client = net::Client::connect(
        {.address = router->endpoints()[0], .server_key = keys.public_key, .keys = {}});
    for (int i = 0; client && i < 500; ++i) {
      const auto start = steady_clock::now();
      if (!client->send("h", "ping", seconds(10)) || !client->receive(seconds(10))) break;
      trips.push_back(
          std::chrono::duration<double, std::micro>(steady_clock::now() - start).count());
    }
    loop.stop();
  });
  loop.run();
  asker.join();
  REQUIRE(trips.size() == 500);
  std::sort(trips.begin(), trips.end());
  MESSAGE(fmt::format("round trip through the loop: median {:.0f} us, 99 % {:.0f} us", trips[250],
                      trips[495]));
  // The limit is generous, so that it also holds in a sanitizer build on a busy machine.
  CHECK(trips[250] < 50'000);
}

// ---- The cluster clock.

struct FakeClocks {
  std::int64_t monotonic = 5'000'000;
  std::int64_t realtime = 1'700'000'000'000'000;
  ClockSource source() {
    return {.monotonic_us = [this] { return monotonic; },
            .realtime_us = [this] { return realtime; }};
  }
  void pass(Duration d) {
    monotonic += d.us;
    realtime += d.us;
  }
};

TEST_CASE("the clock equals the system time while that behaves") {
  FakeClocks fake;
  ClusterClock clock(Instant{}, fake.source());
  for (int i = 0; i < 1000; ++i) {
    CHECK(clock.now().us == fake.realtime);
    fake.pass(milliseconds(i % 37));
  }
}

TEST_CASE("the clock starts at its floor if the system time is behind it, and waits for it") {
  FakeClocks fake;
  const Instant floor{fake.realtime + seconds(60).us};
  ClusterClock clock(floor, fake.source());
  CHECK(clock.now() == floor);
  fake.pass(seconds(600));
  // The clock runs 5 % slow, so 30 s of the 60 s are made up.
  CHECK(clock.now() == floor + seconds(570));
  fake.pass(seconds(600));
  CHECK(clock.now().us == fake.realtime);
}

TEST_CASE("a step of an hour is made up at five per cent, and the clock never goes back") {
  for (const int sign : {+1, -1}) {
    FakeClocks fake;
    ClusterClock clock(Instant{}, fake.source());
    const Instant start = clock.now();
    fake.realtime += sign * hours(1).us;
    Instant last = clock.now();
    CHECK(last == start);
    CHECK(clock.behind() == hours(1) * sign);
    // The clock is read at uneven intervals. Some are too short for a correction of a microsecond.
    for (int i = 0; i < 200'000; ++i) {
      const Duration step{1 + (i * 7919) % 20'000};
      fake.pass(step);
      const Instant now = clock.now();
      CHECK_UNARY(now >= last);
      CHECK_UNARY((now - last).us <= step.us + step.us / 20 + 1000);
      last = now;
    }
    const Duration elapsed{fake.monotonic - 5'000'000};
    const Duration gained = (last - start) - elapsed;
    CHECK(gained.us * sign > elapsed.us / 21);
    CHECK(gained.us * sign <= elapsed.us / 20);
    fake.pass(hours(21));  // An hour is made up in twenty hours.
    (void)clock.now();
    CHECK(clock.now().us == fake.realtime);
  }
}

TEST_CASE("a system time that jumps to and fro does not move the clock back") {
  FakeClocks fake;
  ClusterClock clock(Instant{}, fake.source());
  Instant last = clock.now();
  for (int i = 0; i < 10'000; ++i) {
    fake.pass(Duration{700});
    fake.realtime += (i % 2 == 0 ? 1 : -1) * hours(1).us;
    const Instant now = clock.now();
    CHECK_UNARY(now >= last);
    last = now;
  }
}

}  // namespace
}  // namespace gantry::loop
