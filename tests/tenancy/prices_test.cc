// Price books: the test checks what is read, the words in which mistakes are refused, and the rules
// between several books.
#include "tests/tenancy/sample.h"

#include "config/tenancy/files/load.h"
#include "config/tenancy/read_prices.h"

using namespace gantry;
using namespace gantry::tenancy;
using namespace gantry::test;

namespace {

const std::string kZone = "time_zone: \"CET-1CEST,M3.5.0,M10.5.0/3\"\n";
const std::string kPrices = R"(
apiVersion: gantry/v1
kind: PriceBook
name: prices
currency: EUR
time_zone: "CET-1CEST,M3.5.0,M10.5.0/3"
gpu: {A100: 2.50, v100: 1.80, t4: 0.60, default: 1, a100:1g.5gb+me: 0.40, t4:shared: 0.20}
cpu: 0.02
memory: 0.0035
plans:
  spot: {factor: 0.4, classes: best-effort}
  committed: {factor: 0.75, tenants: [fraud], projects: [fraud/research], tiers: [production]}
  walled: {factor: 1.3, sandboxes: [vm, gvisor]}
hours:
  night: {from: 22:00, until: 06:00, factor: 0.5, days: [fri, mon]}
credits: {preempted: lost, node_failure: all}
)";
const std::string kOthers =
    "apiVersion: gantry/v1\nkind: Tenant\nname: fraud\n---\n"
    "apiVersion: gantry/v1\nkind: Tier\nname: production\n";

std::string book(const std::string& name, const std::string& rest) {
  return "apiVersion: gantry/v1\nkind: PriceBook\nname: " + name + "\n" + rest;
}

std::string refusal(const std::string& text) {
  const auto loaded = load_text(text, "p.yaml", {});
  return loaded ? "" : loaded.error().message;
}

}  // namespace

TEST_CASE("a zone is known as the variable TZ has it") {
  CHECK(zone_rule(":UTC0") == "UTC0");
  CHECK(zone_rule("CET-1CEST,M3.5.0,M10.5.0/3") == "CET-1CEST,M3.5.0,M10.5.0/3");
  for (const char* unknown : {"", "Nowhere/City", "../../etc/passwd", "/etc/passwd"})
    CHECK_FALSE(zone_rule(unknown).has_value());
}

TEST_CASE("a price book is read in full, and the same book comes back after writing") {
  const auto documents = read_all(kOthers + "---" + kPrices);
  REQUIRE(documents.size() == 3);
  const auto& b = std::get<PriceBook>(documents[2]);
  CHECK(b.currency == "EUR");
  CHECK(b.zone == ZoneName{"CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3"});
  CHECK(b.gpu == std::map<std::string, Money>{{"a100", {2'500'000}},
                                              {"v100", {1'800'000}},
                                              {"t4", {600'000}},
                                              {"default", {1'000'000}},
                                              {"a100:1g.5gb+me", {400'000}},
                                              {"t4:shared", {200'000}}});
  CHECK(b.cpu == Money{20'000});
  CHECK(b.memory == Money{3'500});
  CHECK(b.scratch == Money{});
  REQUIRE(b.plans.size() == 3);
  CHECK(b.plans[0] ==
        PricePlan{"committed", 750, {}, {"fraud/research"}, {"fraud"}, {"production"}});
  CHECK(b.plans[1] == PricePlan{"spot", 400, {"best-effort"}, {}, {}, {}});
  CHECK(b.plans[2] == PricePlan{"walled", 1300, {}, {}, {}, {}, {"gvisor", "vm"}});
  REQUIRE(b.hours.size() == 1);
  CHECK(b.hours[0] == PriceHours{"night", 22 * 60, 6 * 60, 500, {"mon", "fri"}});
  CHECK(b.preempted == CreditPart::lost);
  CHECK(b.node_failure == CreditPart::all);
  CHECK(b.launch_failure == CreditPart::all);
  CHECK(read_all(to_text(documents)) == documents);
}

TEST_CASE("mistakes in a price book are refused, and the message says where they are") {
  const auto refused = [](const std::string& rest) { return refusal(book("b", rest)); };
  CHECK(refused("currency: EUR\ngpu: {a100: 2,50}\n").starts_with("p.yaml:5:"));
  CHECK(refused("currency: EUR\ngpu: {a100: -1}\n").find("is not an amount of money") !=
        std::string::npos);
  CHECK(refused("currency: EUR\ngpu: {a100: 10001}\n").find("is more than 10000.00") !=
        std::string::npos);
  CHECK(refused("currency: EUR\ngpu: {a100:b:c: 1}\n").find("is no GPU") != std::string::npos);
  CHECK(refused("currency: EUR\ngpu: {a100: 1, A100: 2}\n").find("given twice") !=
        std::string::npos);
  CHECK(refused("currency: EUR\nfrom: 1.12.2026\n").find("is no date; use 2026-12-01") !=
        std::string::npos);
  CHECK(refused("currency: EUR\ntime_zone: Middle/Earth\n").find("is no time zone") !=
        std::string::npos);
  CHECK(refused("currency: EUR\nplans: {spot: {classes: best-effort}}\n")
            .find("`factor` is missing") != std::string::npos);
  CHECK(refused("currency: EUR\nplans: {spot: {factor: 101}}\n").find("more than 100") !=
        std::string::npos);
  CHECK(refused("currency: EUR\nplans: {spot: {factor: 1, tenants: [nobody]}}\n")
            .find("there is no Tenant `nobody`") != std::string::npos);
  CHECK(refused("currency: EUR\nplans: {p: {factor: 1, projects: [fraud]}}\n")
            .find("use TENANT/PROJECT") != std::string::npos);
  CHECK(refused("currency: EUR\nhours: {n: {from: 25:00, until: 06:00, factor: 1}}\n")
            .find("is no time of the day") != std::string::npos);
  CHECK(refused("currency: EUR\nhours: {n: {from: 06:00, until: 06:00, factor: 1}}\n")
            .find("are two times of the day") != std::string::npos);
  CHECK(refused("currency: EUR\nhours: {n: {from: 06:00, until: 07:00, factor: 1, days: [So]}}\n")
            .find("is no day") != std::string::npos);
  CHECK(refused("currency: EUR\ncredits: {preempted: half}\n").find("is none of none, lost, all") !=
        std::string::npos);
  CHECK(refused("cpu: 0.02\n").find("currency: is missing") != std::string::npos);
  CHECK(refused("currency: EUR\nplans: {a: {factor: 2, sandboxes: [glass]}}\n")
            .find("\"glass\" is no sandbox") != std::string::npos);
  CHECK(refused("currency: EUR\nprice: 2\n").find("unknown key `price`") != std::string::npos);
}

TEST_CASE("several price books agree on currency and time zone, and start at different times") {
  const auto both = [](const std::string& a, const std::string& b) {
    return refusal(book("a", a) + "---\n" + book("b", b));
  };
  CHECK(both("currency: EUR\n" + kZone, "from: 2027-01-01\ncpu: 0.03\n").empty());
  CHECK(both("currency: EUR\n", "from: 2027-01-01\ncurrency: USD\n")
            .find("currency: is USD in PriceBook b") != std::string::npos);
  CHECK(both("currency: EUR\nfrom: 2027-01-01\n", "from: 2027-01-01\n")
            .find("in force from the same time on") != std::string::npos);
  CHECK(both("currency: EUR\n" + kZone, "from: 2027-01-01\ntime_zone: UTC\n")
            .find("time_zone: is UTC in PriceBook b") != std::string::npos);
}
