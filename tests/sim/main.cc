// gantry_sim runs one history or many.
//
//   gantry_sim --seed 7 [--trace]      runs one (and prints every line), then its figures and hash
//   gantry_sim --twice 7               runs it in two processes; the hashes must be the same
//   gantry_sim --seeds 60 [--from 1]   runs 60, each in its own process, two at a time; with
//                                     GANTRY_LONG set, 1,000; one that does not end has failed
//   ... --at-once N                   how many at a time (default 2)
//   ... --tenants yes|no               default: every second seed has tenants
//   ... --gpus yes|no                  default: no GPUs
//   ... --balance yes|no               default: no tenant's job leaves for one that borrows less
//   ... --gangs yes|no                 default: few jobs ask for GPUs; yes: 1 to 32, on nodes of 8
//   ... --changes yes|no               default: requests of waiting jobs and their order stay
//   ... --old-store yes|no             default: no store is replaced; yes: see old_store.h, where
//                                     the other options have no effect
//   ... --pauses yes|no                default: neither the controller nor a machine stands still
//
// If a property is broken, the history prints it with its last 50 lines and how to repeat it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "tests/sim/old_store.h"
#include "tests/sim/simulation.h"

namespace {

using gantry::sim::OldStore;
using gantry::sim::Simulation;
using gantry::sim::Summary;
using gantry::sim::With;

constexpr std::uint64_t kLongSeeds = 1000;
// seconds; a history that takes longer is taken to run without end
constexpr unsigned kPatience = 300;

struct Arguments {
  std::optional<std::uint64_t> seed, twice, seeds;
  std::uint64_t from = 1, at_once = 2;
  bool trace = false;
  std::optional<bool> tenants;
  bool gpus = false, balance = false, changes = false, gangs = false, pauses = false;
  bool old_store = false;
  [[nodiscard]] With with(std::uint64_t number) const {
    return {tenants.value_or(number % 2 == 0), gpus, balance, changes, gangs, pauses};
  }
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--trace") {
      a.trace = true;
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    if (word == "--tenants" || word == "--gpus" || word == "--balance" || word == "--changes" ||
        word == "--gangs" || word == "--pauses" || word == "--old-store") {
      const std::string_view which = argv[++i];
      if (which != "yes" && which != "no") return std::nullopt;
      if (word == "--gpus")
        a.gpus = which == "yes";
      else if (word == "--balance")
        a.balance = which == "yes";
      else if (word == "--changes")
        a.changes = which == "yes";
      else if (word == "--gangs")
        a.gangs = which == "yes";
      else if (word == "--pauses")
        a.pauses = which == "yes";
      else if (word == "--old-store")
        a.old_store = which == "yes";
      else
        a.tenants = which == "yes";
      continue;
    }
    const std::uint64_t value = std::strtoull(argv[++i], nullptr, 10);
    if (word == "--seed")
      a.seed = value;
    else if (word == "--twice")
      a.twice = value;
    else if (word == "--seeds")
      a.seeds = value;
    else if (word == "--from")
      a.from = value;
    else if (word == "--at-once")
      a.at_once = std::max<std::uint64_t>(value, 1);
    else
      return std::nullopt;
  }
  if (!a.seed && !a.twice && !a.seeds) return std::nullopt;
  return a;
}

void put_store_back(std::uint64_t seed, bool trace) {
  OldStore history(seed, trace);
  history.run();
  fmt::print("seed {}: {}; hash {:016x}\n", seed, history.summary(), history.hash());
}

void run_one(std::uint64_t seed, With with, bool trace) {
  Simulation simulation(seed, with, trace);
  const Summary s = simulation.run();
  fmt::print(
      "seed {}: {} jobs, {} runs, {} events, {} turns, {} controllers, {} s; {}hash {:016x}\n",
      seed, s.jobs, s.runs, s.events, s.turns, s.lives, s.length.seconds(), s.tenancy, s.hash);
}

// Returns the hash of one history, run in its own process; nothing if it failed.
std::optional<std::uint64_t> hash_apart(std::uint64_t seed, With with) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t hash = Simulation(seed, with, false).run().hash;
    std::_Exit(write(ends[1], &hash, sizeof hash) == sizeof hash ? 0 : 1);
  }
  close(ends[1]);
  std::uint64_t hash = 0;
  const bool got = read(ends[0], &hash, sizeof hash) == sizeof hash;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return got && status == 0 ? std::optional(hash) : std::nullopt;
}

int run_twice(std::uint64_t seed, With with) {
  const auto first = hash_apart(seed, with), second = hash_apart(seed, with);
  if (!first || !second) return 1;
  fmt::print("seed {}: {:016x} and {:016x}\n", seed, *first, *second);
  return *first == *second ? 0 : 1;
}

int run_many(std::uint64_t from, std::uint64_t count, const Arguments& a) {
  std::map<pid_t, std::uint64_t> running;
  std::uint64_t next = from, failed = 0;
  std::string seeds;
  while (next < from + count || !running.empty()) {
    while (next < from + count && running.size() < a.at_once) {
      std::fflush(stdout);
      const pid_t child = fork();
      if (child == 0) {
        alarm(kPatience);
        if (a.old_store)
          put_store_back(next, false);
        else
          run_one(next, a.with(next), false);
        std::fflush(stdout);
        std::_Exit(0);
      }
      running[child] = next++;
    }
    int status = 0;
    const pid_t child = waitpid(-1, &status, 0);
    const auto it = running.find(child);
    if (it == running.end()) continue;
    if (status != 0) {
      ++failed;
      seeds += fmt::format(" {}", it->second);
    }
    running.erase(it);
  }
  fmt::print("{} of {} seeds failed{}{}\n", failed, count, failed > 0 ? ":" : "", seeds);
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = parse(argc, argv);
  if (!arguments) {
    fmt::print(stderr,
               "usage: gantry_sim (--seed N [--trace] | --twice N |"
               " --seeds COUNT [--from N] [--at-once N]) "
               "[--tenants yes|no] [--gpus yes|no] [--balance yes|no] "
               "[--changes yes|no] [--gangs yes|no] [--pauses yes|no] [--old-store yes|no]\n");
    return 2;
  }
  const Arguments& a = *arguments;
  if (a.twice) return run_twice(*a.twice, a.with(*a.twice));
  if (a.seeds) return run_many(a.from, std::getenv("GANTRY_LONG") ? kLongSeeds : *a.seeds, a);
  if (a.old_store)
    put_store_back(*a.seed, a.trace);
  else
    run_one(*a.seed, a.with(*a.seed), a.trace);
  return 0;
}
