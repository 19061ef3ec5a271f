// Tests which price is valid at which time: price books by date, plans, hours of the day, and the
// instants at which one period of constant price ends.
#include <doctest/doctest.h>

#include "config/tenancy/files/load.h"
#include "ctld/core/state/prices.h"
#include "tests/acct/month.h"

using namespace gantry;
using namespace gantry::core;
using namespace gantry::test;

namespace {

PriceTable table_of(const std::string& text) {
  const auto loaded = tenancy::load_text(text, "p.yaml", {});
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  Documents documents;
  for (const auto& document : loaded->documents) documents.emplace(key_of(document), document);
  return compile_prices(documents);
}

const std::string kHead = "apiVersion: gantry/v1\nkind: PriceBook\nname: ";

std::vector<std::string> pieces(const PriceTable& prices, const std::string& from,
                                const std::string& to) {
  std::vector<std::string> out;
  const Instant end = utc_time(to);
  for (Instant at = utc_time(from); at < end;) {
    const Piece piece = piece_at(prices, prices.zone, at, end);
    out.push_back(std::to_string((piece.until - piece.from).seconds() / 60) + " min x " +
                  std::to_string(piece.hour_factor) + " " + piece.month + " " + piece.week);
    at = piece.until;
  }
  return out;
}

}  // namespace

TEST_CASE("a resource costs its own price, else its part of the GPU's, else the default") {
  const auto prices = table_of(kHead +
                               "a\ncurrency: EUR\ncpu: 0.02\ngpu: {a100: 2.50, a100:1g.5gb: 0.4, "
                               "default: 1}\n");
  const auto* book = prices.at(Instant{});
  REQUIRE(book != nullptr);
  CHECK(price_of(book, "cpu", 1000).micros == 20'000);
  CHECK(price_of(book, "memory", 1024).micros == 0);
  CHECK(price_of(book, "gpu:a100", 1000).micros == 2'500'000);
  CHECK(price_of(book, "gpu:a100:1g.5gb", 142).micros == 400'000);
  CHECK(price_of(book, "gpu:a100:3g.20gb", 428).micros == 1'070'000);
  CHECK(price_of(book, "gpu:h100", 1000).micros == 1'000'000);
  CHECK(price_of(book, "gpu:h100:shared", 250).micros == 250'000);
  CHECK(price_of(nullptr, "cpu", 1000).micros == 0);
}

TEST_CASE("the newest price book whose date has come is in force, in the cluster's time zone") {
  const auto prices = table_of(kHead + "b\nfrom: 2026-12-01\ncpu: 2\n---\n" + kHead +
                               "a\ncurrency: EUR\ntime_zone: \"CET-1CEST,M3.5.0,M10.5.0/3\"\n"
                               "cpu: 1\n---\n" +
                               kHead + "c\nfrom: 2026-12-01T06:00\ncpu: 3\n");
  const auto cpu_at = [&](const std::string& t) { return prices.at(utc_time(t))->cpu.micros; };
  CHECK(cpu_at("2000-01-01T00:00:00") == 1'000'000);
  CHECK(cpu_at("2026-11-30T22:59:59") == 1'000'000);
  CHECK(cpu_at("2026-11-30T23:00:00") == 2'000'000);
  CHECK(cpu_at("2026-12-01T05:00:00") == 3'000'000);
}

TEST_CASE("the lowest-priced of the plans that fit a job is used") {
  const auto prices = table_of(
      "apiVersion: gantry/v1\nkind: Tenant\nname: fraud\n---\n" + kHead +
      "a\ncurrency: EUR\nplans:\n  spot: {factor: 0.4, classes: [best-effort]}\n"
      "  team: {factor: 0.7, tenants: [fraud]}\n  study: {factor: 0.2, projects: [fraud/x]}\n"
      "  sealed: {factor: 1.3, sandboxes: [gvisor]}\n");
  const auto* book = prices.at(Instant{});
  CHECK(plan_for(book, "normal", "other", "x", "", Sandbox::standard).empty());
  CHECK(plan_for(book, "normal", "fraud", "fraud", "", Sandbox::standard) == "team");
  CHECK(plan_for(book, "best-effort", "fraud", "fraud", "", Sandbox::standard) == "spot");
  CHECK(plan_for(book, "best-effort", "fraud", "x", "", Sandbox::standard) == "study");
  CHECK(plan_for(book, "normal", "fraud", "fraud", "", Sandbox::gvisor) == "sealed");
  CHECK(plan_factor(book, "team") == 700);
  CHECK(plan_factor(book, "gone") == 1000);
}

TEST_CASE("periods of constant price end at months, weeks, hours of the day and clock changes") {
  const auto prices = table_of(kHead +
                               "a\ncurrency: EUR\ntime_zone: \"CET-1CEST,M3.5.0,M10.5.0/3\"\n"
                               "hours:\n  early: {from: 02:30, until: 03:30, factor: 0.5}\n");
  // On Sunday 25 October the clock shows 02:30 twice, so the hours named `early` last an hour and a
  // half in all.
  CHECK(pieces(prices, "2026-10-25T00:00:00", "2026-10-25T04:00:00") ==
        std::vector<std::string>{"30 min x 1000 2026-10 2026-W43", "30 min x 500 2026-10 2026-W43",
                                 "30 min x 1000 2026-10 2026-W43", "60 min x 500 2026-10 2026-W43",
                                 "90 min x 1000 2026-10 2026-W43"});
  // On Sunday 29 March 02:30 does not exist, so the hours named `early` last from 03:00 to 03:30.
  CHECK(pieces(prices, "2026-03-29T00:00:00", "2026-03-29T04:00:00") ==
        std::vector<std::string>{"60 min x 1000 2026-03 2026-W13", "30 min x 500 2026-03 2026-W13",
                                 "150 min x 1000 2026-03 2026-W13"});
  const auto plain = table_of(kHead + "a\ncurrency: EUR\n");
  CHECK(pieces(plain, "2026-10-31T12:00:00", "2026-11-03T00:00:00") ==
        std::vector<std::string>{"720 min x 1000 2026-10 2026-W44",
                                 "1440 min x 1000 2026-11 2026-W44",
                                 "1440 min x 1000 2026-11 2026-W45"});
}
