// Hashes (FNV-1a), keeps and prints lines. An assertion of the shipped code ends in abort(): the
// handler here prints the last lines before the process ends.
#include "tests/sim/trace.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

namespace gantry::sim {
namespace {

constexpr std::int64_t kBegin = 1'767'225'600'000'000;  // 2026-01-01, when every history begins

const Trace* aborting = nullptr;  // the handler has no other way to find it

void on_abort(int) {
  if (aborting != nullptr) aborting->print_tail();
  std::_Exit(1);
}

}  // namespace

Trace::Trace(std::uint64_t seed, std::string repeat, bool print)
    : seed_(seed), repeat_(std::move(repeat)), print_(print) {
  aborting = this;
  std::signal(SIGABRT, on_abort);
}

Trace::~Trace() {
  aborting = nullptr;
  std::signal(SIGABRT, SIG_DFL);
}

void Trace::octets(std::string_view bytes) {
  for (const char c : bytes) {
    hash_ ^= static_cast<unsigned char>(c);
    hash_ *= 0x100000001b3;
  }
}

void Trace::line(Instant now, std::string_view text) {
  const std::int64_t us = now.us - kBegin;
  std::string whole = fmt::format("{:5}.{:06} {}", us / 1'000'000, us % 1'000'000, text);
  octets(whole);
  ++lines_;
  if (print_) fmt::print("{}\n", whole);
  tail_.push_back(std::move(whole));
  if (tail_.size() > kKept) tail_.pop_front();
}

void Trace::print_tail() const {
  std::fflush(stdout);
  for (const std::string& line : tail_) fmt::print(stderr, "  {}\n", line);
  fmt::print(stderr, "seed {} failed; repeat: {}\n", seed_, repeat_);
}

void Trace::broken(Instant now, std::string_view promise) {
  line(now, fmt::format("BROKEN: {}", promise));
  print_tail();
  std::_Exit(1);
}

}  // namespace gantry::sim
