// Patterns, fields and judgements of policies, without a controller.
#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "common/policy/judge.h"

namespace gantry::policy::test {
namespace {

using tenancy::Policy;
using tenancy::PolicyAction;
using tenancy::PolicyMode;

TEST_CASE("texts match with wildcards, alternatives and negations") {
  const auto text = [](const char* pattern, const char* value) {
    return matches(Measure::text, pattern, value);
  };
  CHECK(text("train", "train"));
  CHECK_FALSE(text("train", "trains"));
  CHECK(text("train*", "trains"));
  CHECK(text("*-?", "job-7"));
  CHECK_FALSE(text("*-?", "job-77"));
  CHECK(text("a|b", "b"));
  CHECK_FALSE(text("a|b", "c"));
  CHECK(text("!a&!b", "c"));
  CHECK_FALSE(text("!a&!b", "b"));
  CHECK(text("?*", "x"));
  CHECK_FALSE(text("?*", ""));
  CHECK(text("", ""));
  CHECK_FALSE(text("", "x"));
  CHECK(text("*", ""));
  CHECK(text(" a | b ", "b"));
}

TEST_CASE("numbers, memory and times compare by what they mean") {
  CHECK(matches(Measure::number, ">8", "9"));
  CHECK_FALSE(matches(Measure::number, ">8", "8"));
  CHECK(matches(Measure::number, ">=8", "8"));
  CHECK(matches(Measure::number, "4-8", "8"));
  CHECK_FALSE(matches(Measure::number, "!4-8", "8"));
  CHECK(matches(Measure::number, "1|>10", "11"));
  CHECK(matches(Measure::number, ">1&<4", "3"));
  CHECK(matches(Measure::memory, ">=64G", std::to_string(std::int64_t{64} << 30).c_str()));
  CHECK_FALSE(matches(Measure::memory, ">64G", std::to_string(std::int64_t{64} << 30).c_str()));
  CHECK(matches(Measure::duration, ">8:00:00", "28801"));
  CHECK(matches(Measure::duration, "1-00..2-00", "100000"));
  // No limit and no request are not numbers.
  CHECK(matches(Measure::duration, "", ""));
  CHECK_FALSE(matches(Measure::duration, ">1:00:00", ""));
  CHECK(matches(Measure::duration, "!1:00:00", ""));
  CHECK(matches(Measure::number, "?*", "0"));
}

TEST_CASE("a pattern that cannot be read is found when its document is applied") {
  CHECK(check_pattern(Measure::number, ">8|4-6"));
  CHECK(check_pattern(Measure::number, "?*"));
  CHECK_FALSE(check_pattern(Measure::number, "four"));
  CHECK_FALSE(check_pattern(Measure::number, ">"));
  CHECK_FALSE(check_pattern(Measure::number, "4-x"));
  CHECK_FALSE(check_pattern(Measure::memory, ">64Q"));
  CHECK_FALSE(check_pattern(Measure::duration, ">UNLIMITED"));
  CHECK_FALSE(check_pattern(Measure::flag, "yes"));
  CHECK(check_pattern(Measure::flag, "!true"));
  CHECK_FALSE(check_pattern(Measure::text, std::string(kMostPatternBytes + 1, 'a')));
}

// A pattern of many stars is the classic way to make a matcher work for ever.
TEST_CASE("no pattern takes long") {
  std::string pattern, text(200, 'a');
  for (int i = 0; i < 500; ++i) pattern += "*a";
  const auto before = std::chrono::steady_clock::now();
  CHECK_FALSE(glob(pattern + "b", text));
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(1));
}

JobSpec job() {
  JobSpec spec;
  spec.name = "train-7";
  spec.shape.min_nodes = spec.shape.max_nodes = 2;
  spec.shape.gpus_per_node = 4;
  spec.shape.tasks = 8;
  spec.shape.memory_per_cpu = std::int64_t{1} << 30;
  spec.labels["team"] = "vision";
  return spec;
}

Facts facts() {
  return facts_of(job(), {"ann", "fraud", "main", "normal", hours(4)});
}

TEST_CASE("the fields of a job are what it asks for") {
  const Facts f = facts();
  CHECK(f.size() == kFacts.size() + 1);
  for (const FactRow& row : kFacts) CHECK_MESSAGE(f.contains(row.name), row.name);
  CHECK(value_of(f, "gpus") == "8");
  CHECK(value_of(f, "cpus") == "8");
  CHECK(value_of(f, "memory") == std::to_string(std::int64_t{4} << 30));
  CHECK(value_of(f, "time") == "14400");
  CHECK(value_of(f, "labels.team") == "vision");
  CHECK(value_of(f, "labels.other") == "");
  CHECK_FALSE(value_of(f, "colour"));
}

Policy policy(std::string name, PolicyAction action, std::map<std::string, std::string> match) {
  Policy p;
  p.name = std::move(name);
  p.action = action;
  p.match = std::move(match);
  return p;
}

Judgement ask(const std::vector<Policy>& policies, const Facts& f, std::string_view tenant) {
  std::vector<const Policy*> all;
  for (const Policy& p : policies) all.push_back(&p);
  return judge(in_order(all, tenant), f);
}

TEST_CASE("policies are asked in order, and what one fills in the next one sees") {
  Policy fill = policy("fill", PolicyAction::set, {});
  fill.order = -1;
  fill.values = {{"labels.code", "p7"}, {"labels.team", "core"}, {"type", "training"}};
  const Policy deny = policy("deny", PolicyAction::deny, {{"labels.code", "p7"}});
  const Judgement found = ask({deny, fill}, facts(), "fraud");
  CHECK(found.values ==
        std::map<std::string, std::string>{{"labels.code", "p7"}, {"type", "training"}});
  REQUIRE(found.denied_by != nullptr);
  CHECK(found.why == "policy deny refuses it");
}

TEST_CASE("a tenant's allow does not open what the cluster denies") {
  const Policy deny = policy("deny", PolicyAction::deny, {{"gpus", ">4"}});
  Policy open = policy("open", PolicyAction::allow, {});
  open.tenant = "fraud";
  open.order = -10;
  CHECK(ask({deny, open}, facts(), "fraud").denied_by != nullptr);
  open.tenant.clear();
  CHECK(ask({deny, open}, facts(), "fraud").denied_by == nullptr);
  Policy own = deny;
  own.tenant = "fraud";
  CHECK(ask({own, open}, facts(), "fraud").denied_by != nullptr);
}

TEST_CASE("a policy of another tenant is not asked") {
  Policy other = policy("other", PolicyAction::deny, {});
  other.tenant = "blue";
  CHECK(ask({other}, facts(), "fraud").denied_by == nullptr);
  CHECK(ask({other}, facts(), "blue").denied_by != nullptr);
}

TEST_CASE("the mode audit changes nothing and says what it would have done") {
  Policy deny = policy("deny", PolicyAction::deny, {});
  deny.mode = PolicyMode::audit;
  deny.message = "ask first";
  Policy fill = policy("fill", PolicyAction::set, {});
  fill.mode = PolicyMode::audit;
  fill.values = {{"type", "training"}};
  const Judgement found = ask({deny, fill}, facts(), "fraud");
  CHECK(found.denied_by == nullptr);
  CHECK(found.values.empty());
  REQUIRE(found.audited.size() == 2);
  CHECK(found.audited[0].text == "policy deny would refuse it: ask first");
}

TEST_CASE("a job of which a field is not known is neither matched nor passed over in silence") {
  Facts f = facts();
  f.erase("image");
  const Policy images = policy("images", PolicyAction::deny, {{"image", "docker://*"}});
  CHECK(holds(images, f) == Holds::unknown);
  CHECK(holds(policy("both", PolicyAction::deny, {{"image", "*"}, {"gpus", "1"}}), f) == Holds::no);
}

}  // namespace
}  // namespace gantry::policy::test
