// Tests gtenant budget and gtenant request against a controller that gives fixed replies.
#include <doctest/doctest.h>

#include "tests/cli/samples.h"

using namespace gantry;
using namespace gantry::test;

namespace {

proto::BudgetList budgets() {
  proto::BudgetList reply;
  reply.currency = "EUR";
  reply.now = kNow;
  proto::BudgetRow row;
  row.budget.name = "fraud-month";
  row.budget.tenant = "fraud";
  row.budget.amount = {100'000'000};
  row.period = "2026-11";
  row.from = row.to = kNow;
  row.amount = {150'000'000};
  row.increase = {50'000'000};
  row.spent = {75'000'000};
  row.reserved = {12'340'000};
  row.forecast = {160'500'000};
  row.waiting = 3;
  reply.rows.push_back(row);
  row.budget.name = "grant";
  row.budget.project = "retraining";
  row.budget.user = "alice";
  row.budget.at_limit = tenancy::BudgetAction::lower_class;
  row.budget.lower_to = "best-effort";
  row.period = "";
  row.waiting = 0;
  reply.rows.push_back(row);
  return reply;
}

proto::IncreaseReply requests() {
  proto::Increase money;
  money.number = 7;
  money.tenant = "fraud";
  money.budget = "fraud-month";
  money.amount = Money{500'000'000};
  money.asked_by = "carol";
  money.reason = "retraining";
  proto::Increase quota;
  quota.number = 8;
  quota.tenant = "fraud";
  quota.quota = 8 * kGpuUnit;
  quota.flavor = "a100";
  quota.asked_by = "carol";
  quota.decided_by = "root";
  quota.state = proto::IncreaseState::approved;
  quota.note = "until we have more";
  return {{money, quota}, "EUR"};
}

}  // namespace

TEST_CASE("gtenant budget list shows what is left, and names a budget that does not exist") {
  FakeController fake;
  fake.answer<proto::ListBudgets>(budgets());
  const Run run = fake.run({"gtenant", "budget", "list"});
  CHECK(run.status == 0);
  CHECK(run.out ==
        "BUDGET      OF                       AMOUNT    SPENT     LEFT  FORECAST  USE\n"
        "fraud-month fraud                    150.00    75.00    62.66    160.50  50%\n"
        "grant       fraud/retraining alice   150.00        -        -         -    -\n");
  CHECK(fake.run({"gtenant", "budget", "list", "-l"}).out ==
        "BUDGET      OF                     PERIOD      AMOUNT      SPENT   RESERVED       LEFT   "
        "FORECAST   USE WAITING AT LIMIT\n"
        "fraud-month fraud                  2026-11     150.00      75.00      12.34      62.66   "
        "  160.50   50%       3 hold\n"
        "grant       fraud/retraining alice -           150.00          -          -          -   "
        "       -     -       0 lower-class best-effort\n");
  CHECK(fake.run({"gtenant", "budget", "list", "-h", "-o", "%n %l %i", "fraud-month"}).out ==
        "fraud-month 62.66 50.00\ngrant - 50.00\n");
  CHECK(fake.last<proto::ListBudgets>().names == std::vector<std::string>{"fraud-month"});
  CHECK(fake.run({"gtenant", "budget", "list", "--json"}).out.find("\"waiting\": 3") !=
        std::string::npos);
  const Run unknown = fake.run({"gtenant", "budget", "list", "lab"});
  CHECK(unknown.status == 1);
  CHECK(unknown.err.find("there is no budget lab, nor one of a tenant lab") != std::string::npos);
}

TEST_CASE("gtenant request asks for more budget, decides on requests and lists them") {
  FakeController fake;
  fake.answer<proto::AskIncrease>(requests());
  fake.answer<proto::DecideIncrease>(requests());
  fake.answer<proto::ListIncreases>(requests());
  const Run asked = fake.run({"gtenant", "request", "ask", "fraud", "--budget", "fraud-month",
                              "--amount", "500", "-m", "retraining"});
  CHECK(asked.status == 0);
  CHECK(asked.out ==
        "request 7: 500.00 EUR for fraud-month more of tenant fraud: asked\n"
        "request 8: 8 GPUs of a100 more of tenant fraud: approved\n");
  CHECK(fake.last<proto::AskIncrease>().wanted.amount == Money{500'000'000});
  CHECK(fake.last<proto::AskIncrease>().wanted.reason == "retraining");
  CHECK(fake.run({"gtenant", "request", "ask", "fraud", "--quota", "gpu=8", "--flavor", "a100"})
            .status == 0);
  CHECK(fake.last<proto::AskIncrease>().wanted.quota == 8 * kGpuUnit);
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"fraud"},
           {"fraud", "--amount", "5"},
           {"fraud", "--budget", "b", "--amount", "5", "--quota", "gpu=1"},
           {"fraud", "--quota", "gold=1"},
           {"fraud", "--budget", "b", "--amount", "5", "--flavor", "a100"},
           {"--quota", "gpu=1"}}) {
    std::vector<std::string> command{"gtenant", "request", "ask"};
    command.insert(command.end(), wrong.begin(), wrong.end());
    CHECK(fake.run(command).status == 2);
  }
  CHECK(fake.run({"gtenant", "request", "deny", "7", "-m", "no"}).status == 0);
  CHECK(fake.last<proto::DecideIncrease>().state == proto::IncreaseState::denied);
  CHECK(fake.last<proto::DecideIncrease>().note == "no");
  CHECK(fake.run({"gtenant", "request", "approve", "seven"}).status == 1);
  const Run list = fake.run({"gtenant", "request", "list", "-a", "fraud"});
  CHECK(fake.last<proto::ListIncreases>().all);
  CHECK(list.out ==
        "REQUEST TENANT MORE                       UNTIL    STATE    BY    DECIDED REASON\n"
        "      7 fraud  500.00 EUR for fraud-month for good asked    carol -       retraining\n"
        "      8 fraud  8 GPUs of a100             for good approved carol root     (until we "
        "have more)\n");
}

TEST_CASE("gtenant events shows the events of budgets") {
  FakeController fake;
  proto::TenantEventsReply reply;
  proto::QuotaAlert alert;
  alert.number = 1;
  alert.at = kNow;
  alert.tenant = "fraud";
  alert.percent = 100;
  alert.budget = "fraud-month";
  alert.period = "2026-11";
  alert.spent = {100'010'000};
  alert.amount = {100'000'000};
  alert.ended = 2;
  reply.events = {alert};
  fake.answer<proto::TenantEvents>(reply);
  CHECK(fake.run({"gtenant", "events"})
            .out.find(" fraud has spent 100.01 of 100.00 of budget fraud-month for 2026-11: 100 % "
                      "reached, 2 jobs are ended\n") != std::string::npos);
}
