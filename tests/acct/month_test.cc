// Compares the ledger with figures that were worked out on paper: each line of README.md is
// checked.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>

#include "ctld/core/money/ledger.h"
#include "tests/acct/month.h"

using namespace gantry;
using namespace gantry::core;
using namespace gantry::test;

namespace {

// Returns the cells of each row of the table whose head begins with `head`.
std::vector<std::vector<std::string>> table(const std::string& head) {
  std::vector<std::vector<std::string>> out;
  bool within = false;
  for (const std::string& line : split_at(read_source("README.md"), '\n')) {
    if (line.starts_with(head)) {
      within = true;
      continue;
    }
    if (!line.starts_with("|")) within = false;
    if (!within || line.starts_with("|--")) continue;
    std::vector<std::string> cells;
    for (const std::string& cell : split_at(line.substr(1), '|')) {
      const std::size_t first = cell.find_first_not_of(' ');
      const std::size_t last = cell.find_last_not_of(' ');
      const std::string text = cell.substr(first, last - first + 1);
      cells.push_back(text == "-" ? "" : text);
    }
    out.push_back(std::move(cells));
  }
  return out;
}

// Formats the held amount as an exact number of core-seconds, GPU-seconds or MiB-seconds.
std::string seconds_text(const Held& held, const std::string& item) {
  const std::int64_t unit = held_unit(item);
  const __int128 whole =
      static_cast<__int128>(held.hours) * unit * kMicrosecondsPerHour + held.rest;
  const bool bytes = unit == kMebibyteUnit;
  const std::int64_t places = bytes ? 1'000'000 : 1'000'000'000;
  return fmt::format("{}.{:0{}}", static_cast<std::int64_t>(whole / places),
                     static_cast<std::int64_t>(whole % places), bytes ? 6 : 9);
}

std::string row_text(const LedgerParts& p, const LedgerSum& s) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", p.period, p.tenant, p.project,
                     p.user, p.job_type, p.pool, p.item, p.plan, seconds_text(s.held, p.item),
                     seconds_text(s.credited, p.item), format_money(s.cost, 6),
                     format_money(s.credit, 6), s.runs);
}

}  // namespace

TEST_CASE("every job of the month costs exactly what was worked out on paper") {
  Month month;
  month.play();
  const auto paper = table("| job |");
  REQUIRE(paper.size() == 33);
  Money cost, credit;
  for (const auto& row : paper) {
    if (row[0] == "all") {
      CHECK(format_money(cost, 6) == row[1]);
      CHECK(format_money(credit, 6) == row[2]);
      continue;
    }
    const auto own = cost_of(month.state(), month.job(row[0]), utc_time("2027-01-01T00:00:00"));
    REQUIRE(own);
    CHECK_MESSAGE(format_money(own->cost, 6) == row[1], row[0]);
    CHECK_MESSAGE(format_money(own->credit, 6) == row[2], row[0]);
    CHECK_FALSE(own->rate);  // A job that has ended holds nothing, so it has no cost per hour.
    cost += own->cost;
    credit += own->credit;
  }
}

TEST_CASE("every line of the ledger equals its line on paper") {
  Month month;
  month.play();
  std::vector<std::string> paper;
  for (const auto& row : table("| month |")) {
    REQUIRE(row.size() == 13);
    std::string text;
    for (const std::string& cell : row) text += (&cell == row.data() ? "" : " ") + cell;
    paper.push_back(text);
  }
  REQUIRE(paper.size() > 60);
  std::vector<std::string> kept;
  for (const auto& [key, sum] : month.state().ledger.sums) {
    const LedgerParts parts = ledger_parts(key);
    if (parts.period.find('W') == std::string::npos) kept.push_back(row_text(parts, sum));
  }
  std::sort(paper.begin(), paper.end());
  std::sort(kept.begin(), kept.end());
  CHECK(kept.size() == paper.size());
  for (std::size_t i = 0; i < std::min(kept.size(), paper.size()); ++i) CHECK(kept[i] == paper[i]);
}

TEST_CASE("the sums of the weeks equal the sums of the months") {
  Month month;
  month.play();
  std::map<std::string, LedgerSum> months, weeks;
  for (const auto& [key, sum] : month.state().ledger.sums) {
    LedgerParts parts = ledger_parts(key);
    const bool week = parts.period.find('W') != std::string::npos;
    parts.period.clear();
    LedgerSum& all = (week ? weeks : months)[ledger_key(parts)];
    add_held(all.held, sum.held, held_unit(parts.item));
    add_held(all.credited, sum.credited, held_unit(parts.item));
    all.cost += sum.cost;
    all.credit += sum.credit;
    all.runs += sum.runs;
  }
  REQUIRE(months.size() == weeks.size());
  for (const auto& [key, sum] : months) {
    const LedgerSum& other = weeks.at(key);
    CHECK(sum.held == other.held);
    CHECK(sum.credited == other.credited);
    CHECK(sum.cost == other.cost);
    CHECK(sum.credit == other.credit);
    CHECK(sum.runs == other.runs);
  }
}

TEST_CASE("at any moment, the booked cost and the cost of running jobs add up to the final cost") {
  // A report is made at the time of each event; no cost may be missing or counted twice.
  Month month;
  Money before;
  month.watch = [&](const State& state, Instant at) {
    Money all;
    for (const auto& [key, sum] : state.ledger.sums)
      if (key.starts_with('M')) all += sum.cost;
    accrue(state, at, [&](const LedgerParts& parts, const LedgerSum& more) {
      if (parts.period.find('W') == std::string::npos) all += more.cost;
    });
    CHECK(all >= before);
    before = all;
  };
  month.play();
  Money all;
  for (const auto& [key, sum] : month.state().ledger.sums)
    if (key.starts_with('M')) all += sum.cost;
  CHECK(all == before);
}
