// Runs commands against a controller that gives its listings in pages of one row each, in an order
// unlike the one in which they are shown. The commands must print the same as for whole replies.
#include <doctest/doctest.h>

#include <fmt/ranges.h>

#include <algorithm>

#include "common/text/hostlist.h"
#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"

using namespace gantry;
using namespace gantry::test;

namespace {

const std::map<std::string, std::string> kOptions{
    {"cluster", "lab"}, {"controller.kill_wait", "30s"}, {"controller.min_job_age", "5m"}};

proto::TenancyHistoryReply sample_revisions() {
  using proto::ChangeAction;
  proto::TenancyRevision second;
  second.revision = 2;
  second.at = kNow;
  second.author = "root";
  second.comment = "more";
  second.changes = {{ChangeAction::created, "Tenant", "blue", {}},
                    {ChangeAction::changed, "Tenant", "red", {{"weight", "1", "2"}}},
                    {ChangeAction::removed, "Tier", "small", {}}};
  proto::TenancyRevision first = second;
  first.revision = 1;
  first.comment = "";
  first.changes.resize(1);
  return {{second, first}};
}

void whole(FakeController& fake) {
  fake.answer<proto::ListNodes>(proto::ListNodesReply{sample_nodes(), kNow});
  fake.answer<proto::ListPartitions>(
      proto::ListPartitionsReply{sample_partitions(), {{"matlab", 5, 2}}});
  fake.answer<proto::ShareTree>(sample_shares());
  fake.answer<proto::PriorityTuples>(sample_priorities());
  fake.answer<proto::ShowConfig>(proto::ShowConfigReply{kOptions});
  fake.answer<proto::TenancyHistory>(sample_revisions());
}

// Returns the row that stands on the page which begins at `from`: pages go from the last row to the
// first.
std::size_t turned(std::size_t rows, std::uint32_t from) {
  return rows - 1 - from;
}

void in_pages(FakeController& fake) {
  fake.on<proto::ListNodes>([](const proto::ListNodes& m) {
    auto rows = sample_nodes();
    const std::size_t i = turned(rows.size(), m.from.value());
    proto::ListNodesReply reply;
    reply.now = kNow;
    reply.page = proto::NodePage{{}, {static_cast<std::uint32_t>(i)}, {rows[i].partitions}, {0}};
    if (i > 0) reply.page->next = *m.from + 1;
    rows[i].partitions.clear();
    reply.nodes = {std::move(rows[i])};
    return reply;
  });
  fake.on<proto::ListPartitions>([](const proto::ListPartitions& m) {
    auto rows = sample_partitions();
    const std::size_t i = turned(rows.size(), m.from.value());
    proto::ListPartitionsReply reply;
    reply.page = proto::PartitionPage{
        {}, {static_cast<std::uint32_t>(i)}, {compress_hostlist(rows[i].nodes)}, {0}};
    if (i > 0) reply.page->next = *m.from + 1;
    if (*m.from == 0) reply.licenses = {{"matlab", 5, 2}};
    rows[i].nodes.clear();
    reply.partitions = {std::move(rows[i])};
    return reply;
  });
  fake.on<proto::ShareTree>([](const proto::ShareTree& m) {
    proto::ShareTreeReply reply = sample_shares();
    const auto second = [](const proto::ShareRow& row) { return row.tenant == "performance"; };
    const bool last = m.from.value() > 0;
    std::erase_if(reply.rows, [&](const auto& row) { return second(row) == last; });
    reply.page = proto::SharePage{{}, {last ? 0u : 1u}};
    if (!last) reply.page->next = 7;
    return reply;
  });
  fake.on<proto::PriorityTuples>([](const proto::PriorityTuples& m) {
    proto::PriorityTuplesReply reply = sample_priorities();
    std::reverse(reply.rows.begin(), reply.rows.end());
    const bool last = m.after_job.value() != JobId{};
    reply.rows = {reply.rows[last ? 1 : 0]};
    reply.rows[0].place = 0;
    reply.page.emplace();
    if (!last) reply.page->next = JobId{12};
    return reply;
  });
  fake.on<proto::ShowConfig>([](const proto::ShowConfig& m) {
    proto::ShowConfigReply reply;
    auto it = kOptions.upper_bound(m.after.value());
    reply.values.insert(*it);
    reply.page = proto::ConfigPage{++it != kOptions.end()};
    return reply;
  });
  fake.on<proto::TenancyHistory>([](const proto::TenancyHistory& m) {
    const auto all = sample_revisions().revisions;
    const proto::HistoryPlace at = m.from.value();
    const bool first = at.revision == 1;
    proto::TenancyRevision some = all[first ? 1 : 0];
    // The changes of the second revision come in another order, because the order is not
    // guaranteed.
    if (!first) some.changes = {some.changes[2 - at.change]};
    proto::TenancyHistoryReply reply{{some}};
    reply.page.emplace();
    if (!first)
      reply.page->next =
          at.change < 2 ? proto::HistoryPlace{2, at.change + 1} : proto::HistoryPlace{1, 0};
    return reply;
  });
}

}  // namespace

TEST_CASE("commands print the same for a listing in pages as for one whole reply") {
  FakeController a, b;
  whole(a);
  in_pages(b);
  const std::vector<std::vector<std::string>> commands{
      {"ginfo"},
      {"ginfo", "-Nl"},
      {"ginfo", "-l", "-p", "debug"},
      {"ginfo", "-R"},
      {"ginfo", "-s"},
      {"ginfo", "--json"},
      {"ginfo", "--gpus"},
      {"gctl", "show", "node"},
      {"gctl", "show", "node", "--json"},
      {"gctl", "show", "partition"},
      {"gctl", "show", "partition", "--json"},
      {"gctl", "show", "config"},
      {"gprio"},
      {"gprio", "-n", "1"},
      {"gprio", "--json"},
      {"gshare"},
      {"gshare", "--json"},
      {"gtenant", "history"},
      {"gtenant", "history", "-l"},
      {"gtenant", "history", "--json"},
      {"slurm/sinfo"},
      {"slurm/sinfo", "-N", "-l"},
      {"slurm/sinfo", "--json"},
      {"slurm/scontrol", "show", "node"},
      {"slurm/scontrol", "show", "partition"},
      {"slurm/scontrol", "show", "licenses"},
      {"slurm/sprio", "-l"},
      {"slurm/sshare", "-a", "-l"},
  };
  for (const auto& command : commands) {
    CAPTURE(fmt::format("{}", fmt::join(command, " ")));
    const Run first = a.run(command), second = b.run(command);
    CHECK(first.status == 0);
    CHECK(!first.out.empty());
    CHECK(second.status == first.status);
    CHECK(second.out == first.out);
    CHECK(second.err == first.err);
  }
}
