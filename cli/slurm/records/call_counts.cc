#include "cli/slurm/records/call_counts.h"

#include <pwd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <tuple>

#include <fmt/core.h>

namespace gantry::cli::slurm {
namespace {

std::int64_t mean_of(const proto::CallCount& c) {
  return c.count > 0 ? c.time.us / static_cast<std::int64_t>(c.count) : 0;
}

std::vector<proto::CallCount> sorted(std::vector<proto::CallCount> calls, CallOrder order) {
  const auto amount = [&](const proto::CallCount& c) -> std::int64_t {
    switch (order) {
      case CallOrder::count: return static_cast<std::int64_t>(c.count);
      case CallOrder::time: return c.time.us;
      case CallOrder::mean: return mean_of(c);
      case CallOrder::name: break;
    }
    return 0;
  };
  std::sort(calls.begin(), calls.end(), [&](const auto& a, const auto& b) {
    return std::tuple(-amount(a), a.name) < std::tuple(-amount(b), b.name);
  });
  return calls;
}

void print_counts(const proto::CallCount& c) {
  fmt::print(" count:{:<6} ave_time:{:<6} total_time:{}\n", c.count, mean_of(c), c.time.us);
}

}  // namespace

void print_calls(const proto::ShowStatsReply& stats, CallOrder order) {
  fmt::print("\nRemote Procedure Call statistics by message type\n");
  for (const proto::CallCount& c : sorted(stats.calls, order)) {
    std::uint16_t number = 0;
    for (const proto::MessageRow& row : proto::kMessages)
      if (row.name == c.name) number = static_cast<std::uint16_t>(row.type);
    fmt::print("\t{:<40}({:5})", c.name, number);
    print_counts(c);
  }
  fmt::print("\nRemote Procedure Call statistics by user\n");
  for (const proto::CallCount& c : sorted(stats.callers, order)) {
    const passwd* known = ::getpwnam(c.name.c_str());
    fmt::print("\t{:<16}({:>8})", c.name, known != nullptr ? std::to_string(known->pw_uid) : "-");
    print_counts(c);
  }
}

std::string c_time(Instant t) {
  const std::time_t seconds = static_cast<std::time_t>(t.us / 1'000'000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%a %b %d %H:%M:%S %Y", &parts);
  return fmt::format("{} ({})", text.data(), static_cast<std::int64_t>(seconds));
}

}  // namespace gantry::cli::slurm
