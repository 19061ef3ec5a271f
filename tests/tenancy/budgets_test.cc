// Budgets as documents: the test checks what is read, and the words in which mistakes are refused.
#include "tests/tenancy/sample.h"

#include "config/tenancy/files/load.h"

using namespace gantry;
using namespace gantry::tenancy;
using namespace gantry::test;

namespace {

const std::string kAround =
    "apiVersion: gantry/v1\nkind: Tenant\nname: fraud\nprojects: {retraining: {shares: 1}}\n---\n"
    "apiVersion: gantry/v1\nkind: PriceBook\nname: base\ncurrency: EUR\ncpu: 0.02\n---\n";

std::string budget(const std::string& rest) {
  return "apiVersion: gantry/v1\nkind: Budget\nname: b\n" + rest;
}

std::string refusal_of(const std::string& text) {
  const auto loaded = load_text(text, "b.yaml", {});
  return loaded ? "" : loaded.error().message;
}

}  // namespace

TEST_CASE("a budget document is read in full, and the same budget comes back after writing") {
  const auto documents =
      read_all(kAround +
               budget("tenant: fraud\nproject: retraining\nuser: alice\namount: 12500.50\n"
                      "period: quarter\nwarn_at: [50, 80]\nat_limit: lower-class\n"
                      "lower_to: best-effort\n") +
               "---\napiVersion: gantry/v1\nkind: Budget\nname: grant\ntenant: fraud\namount: 100\n"
               "period: fixed\nfrom: 2026-11-01\nuntil: 2027-04-01\nat_limit: stop\ngrace: 5m\n");
  REQUIRE(documents.size() == 4);
  const auto& b = std::get<Budget>(documents[2]);
  CHECK(b.amount == Money{12'500'500'000});
  CHECK(b.period == BudgetPeriod::quarter);
  CHECK(b.warn_at == std::vector<std::uint32_t>{50, 80});
  CHECK(b.at_limit == BudgetAction::lower_class);
  CHECK(b.lower_to == "best-effort");
  const auto& grant = std::get<Budget>(documents[3]);
  CHECK(grant.period == BudgetPeriod::fixed);
  CHECK(grant.grace == minutes(5));
  CHECK(read_all(to_text(documents)) == documents);
}

TEST_CASE("mistakes in a budget are refused, and the message says where they are") {
  const auto refused = [](const std::string& rest, const std::string& words) {
    const std::string said = refusal_of(kAround + budget(rest));
    CHECK_MESSAGE(said.find(words) != std::string::npos, said);
  };
  const std::string fine = "tenant: fraud\namount: 100\n";
  CHECK(refusal_of(kAround + budget(fine)).empty());
  CHECK(refusal_of(kAround + budget("tenant: fraud\namount: 1,5\n")).starts_with("b.yaml:16:"));
  refused("amount: 100\n", "tenant: is missing");
  refused("tenant: frood\namount: 100\n", "tenant: there is no Tenant `frood`");
  refused("tenant: fraud\n", "amount: is missing; a budget has an amount above 0");
  refused("tenant: fraud\namount: 0\n", "is outside of 0.000001 to");
  refused(fine + "project: serving\n", "tenant fraud has no project `serving`");
  refused(fine + "user: \"a b\"\n", "is not the name of a user");
  refused(fine + "period: day\n", "\"day\" is none of month, quarter, year, week, fixed");
  refused(fine + "from: 2026-11-01\n", "from: is only for `period: fixed`");
  refused(fine + "period: fixed\nfrom: 2026-11-01\n", "until: is missing");
  refused(fine + "period: fixed\nfrom: 2026-11-02\nuntil: 2026-11-01\n", "is not after `from`");
  refused(fine + "warn_at: [80, 50]\n", "the percentages have to rise");
  refused(fine + "warn_at: [0]\n", "warn_at");
  refused(fine + "at_limit: kill\n", "\"kill\" is none of warn, lower-class, hold, stop");
  refused(fine + "at_limit: lower-class\n", "lower_to: is missing");
  refused(fine + "lower_to: best-effort\n", "is only for `at_limit: lower-class`");
  refused(fine + "at_limit: lower-class\nlower_to: slow\n", "there is no PriorityClass `slow`");
  refused(fine + "grace: 2d\n", "grace: is outside of 0s to 24h");
  refused(fine + "limit: 3\n", "unknown key `limit`");
  const std::string alone =
      refusal_of("apiVersion: gantry/v1\nkind: Tenant\nname: fraud\n---\n" + budget(fine));
  CHECK_MESSAGE(alone.find("there is no PriceBook") != std::string::npos, alone);
}
