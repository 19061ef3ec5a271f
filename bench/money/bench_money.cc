// The ledger after a month of many jobs: the bench measures the cost that it adds to each job, and
// the cost of reading it.
//
//   bench_money [jobs [tenants]]     defaults 10,000,000 and 1,000
//
// The controller's core replays the events of every job (submit, start, release by the node, end,
// removal), as after a crash, and is then asked for bills. Each tenant has ten users, and there are
// two kinds of jobs and four models of GPUs.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "common/codec/codec.h"
#include "common/proto/ledger.h"
#include "common/proto/session.h"
#include "ctld/core/core.h"
#include "ctld/core/event/events.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/event/journal.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/stored_spec.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/change.h"
#include "ctld/store/store.h"

namespace gantry::core {
namespace {

constexpr Instant kBegin{1'767'225'600'000'000};  // 2026-01-01T00:00:00Z
constexpr std::int64_t kGib = std::int64_t{1} << 30;
constexpr std::uint32_t kUsers = 10;
constexpr std::array<const char*, 4> kModels{"gpu:a100", "gpu:h100", "gpu:v100", "gpu:t4"};

// CPU time of this thread. Nothing here waits, so this is the whole time.
double micros() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

double megabytes_resident() {
  std::ifstream in("/proc/self/statm");
  double pages = 0;
  in >> pages >> pages;
  return pages * 4096 / 1e6;
}

Config one_node() {
  Config config;
  NodeConfig node;
  node.name = "n1";
  node.cpus = 64;
  node.memory = 512 * kGib;
  node.gpus = 8;
  node.gpu_model = "a100";
  config.nodes.push_back(node);
  PartitionConfig partition;
  partition.name = "main";
  partition.is_default = true;
  partition.nodes = {"n1"};
  config.partitions.push_back(partition);
  return config;
}

class Month {
 public:
  Month(std::uint64_t jobs, std::uint32_t tenants)
      : core_(one_node()), jobs_(jobs), tenants_(tenants) {
    tell(kBegin, event::NodeDeclared{NodeId(0), "n1"});
    for (std::uint32_t t = 0; t < tenants; ++t)
      tell(kBegin, event::PartitionDeclared{PartitionId(t), fmt::format("tenant{:04}", t)});
    tenancy::PriceBook book;
    book.name = "base";
    book.currency = "EUR";
    book.zone = {"CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3"};
    book.gpu = {{"a100", Money{2'500'000}}, {"default", Money{1'000'000}}};
    book.cpu = Money{20'000};
    book.memory = Money{3'000};
    event::TenancyApplied applied;
    applied.revision = 1;
    applied.changes.push_back(
        {tenancy::PriceBook::kKind, "base", std::nullopt, tenancy::Document(book)});
    applied.new_classes = new_class_names({}, {});
    tell(kBegin, applied);
  }

  void play() {
    for (std::uint64_t i = 0; i < jobs_; ++i) {
      job(i);
      if (i % 10'000 != 9'999) continue;
      for (const store::HistoryEntry& entry : core_.take_fold().history)
        // An entry takes space for its key and in the index, too.
        history_bytes_ += entry.data.size() + 16 + 24;
    }
  }

  // The median time of several questions, in microseconds.
  double ask(proto::QueryLedger query, std::size_t& rows) {
    if (!started_ && !core_.start(kBegin + hours(24 * 40))) std::abort();
    started_ = true;
    (void)core_.take_turn();
    std::vector<double> samples;
    for (int i = 0; i < 15; ++i) {
      ClientRequest request;
      request.who.owner.user = "admin";
      request.who.role = proto::Role::admin;
      request.message = query;
      const double before = micros();
      core_.step(kBegin + hours(24 * 40), std::move(request));
      const Turn turn = core_.take_turn();
      const Bytes bytes = codec::encode(turn.replies.at(0).message.get<proto::LedgerReply>());
      samples.push_back(micros() - before);
      rows = turn.replies.at(0).message.get<proto::LedgerReply>().rows.size();
    }
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
  }

  [[nodiscard]] std::size_t sums() const { return core_.state().ledger.sums.size(); }
  [[nodiscard]] double history_bytes() const {
    return static_cast<double>(history_bytes_) / static_cast<double>(jobs_);
  }

 private:
  void tell(Instant at, EventRef event) {
    seq_ = EventSeq(seq_.value() + 1);
    if (!core_.replay({seq_, encode_event(at, event)})) std::abort();
  }

  void job(std::uint64_t i) {
    const JobId id(i + 1);
    const auto tenant = static_cast<std::uint32_t>(i * 7919 % tenants_);
    const auto user = static_cast<std::uint32_t>(i / tenants_ % kUsers);
    const Instant at = kBegin + Duration{static_cast<std::int64_t>(
                                    i * (hours(24 * 31).us / static_cast<std::int64_t>(jobs_)))};
    const Instant end = at + seconds(30 + static_cast<std::int64_t>(i * 31 % 3600));
    StoredSpec spec;
    spec.spec.name = "train";
    spec.spec.account = fmt::format("project{}", user % 3);
    spec.spec.work_dir = "/home/user/project";
    spec.spec.submit_line = "gbatch --gpus=1 train.sh";
    spec.spec.kind = i % 5 == 0 ? JobKind::allocation : JobKind::batch;
    spec.owner.uid = Uid(1000 + user);
    spec.owner.user = fmt::format("user{}", user);
    if (!core_.load_spec(id, codec::encode(spec))) std::abort();
    event::JobSubmitted submitted;
    submitted.job = id;
    submitted.partition = PartitionId(tenant);
    submitted.time_limit = hours(4);
    tell(at, submitted);
    event::JobPlaced placed;
    placed.job = id;
    placed.attempt = Attempt(1);
    sched::NodeGrant grant;
    grant.node = NodeId(0);
    grant.cpus = {0, 1, 2, 3};
    grant.memory = 32 * kGib;
    grant.gpus = 1;
    placed.grants = {grant};
    placed.items = {{"shared", "cpu", 1000},
                    {"shared", "memory", 1024},
                    {"shared", kModels[(tenant + user) % kModels.size()], 1000}};
    placed.held = {{{0, 4000}, {1, 32 * 1024}, {2, 1000}}};
    tell(at, placed);
    tell(end, event::JobFinishing{id, Outcome::completed, ExitStatus{}, "", {}, {}, {}});
    event::NodeExited exited;
    exited.job = id;
    exited.node = NodeId(0);
    exited.usage = {1'000'000'000, 10'000'000, 20 * kGib, 1'000'000, 1'000'000, {}};
    exited.ran = end - at;
    tell(end, exited);
    tell(end, event::JobEnded{id, Outcome::completed, ExitStatus{}, ""});
    tell(end, event::JobsForgotten{{id}});
  }

  Core core_;
  std::uint64_t jobs_;
  std::uint32_t tenants_;
  EventSeq seq_;
  std::uint64_t history_bytes_ = 0;
  bool started_ = false;
};

}  // namespace
}  // namespace gantry::core

int main(int argc, char** argv) {
  using namespace gantry;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::uint64_t jobs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000;
  const auto tenants =
      static_cast<std::uint32_t>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1'000);
  core::Month month(jobs, tenants);
  const double begin = core::micros();
  month.play();
  const double each = (core::micros() - begin) / static_cast<double>(jobs);
  fmt::print("{} jobs of {} tenants\n", jobs, tenants);
  fmt::print("{:<60} {:>10.2f} us\n", "all events of a job, replayed", each);
  fmt::print("{:<60} {:>10}\n", "sums of the ledger", month.sums());
  fmt::print("{:<60} {:>10.0f} MB\n", "memory resident", core::megabytes_resident());
  fmt::print("{:<60} {:>10.0f} bytes\n", "history of a finished job", month.history_bytes());
  const auto row = [&](std::string_view what, proto::QueryLedger query) {
    std::size_t rows = 0;
    const double cost = month.ask(std::move(query), rows);
    fmt::print("{:<60} {:>10.2f} ms, {} rows\n", what, cost / 1000, rows);
  };
  row("a month of one tenant, by item",
      {"2026-01", "2026-01", {"period", "item"}, {"tenant0007"}, {}, {}});
  row("a month of all tenants, by item",
      {"2026-01", "2026-01", {"period", "tenant", "item"}, {}, {}, {}});
  row("a month of all, by tenant, project and user",
      {"2026-01", "2026-01", {"tenant", "project", "user"}, {}, {}, {}});
  row("five weeks of one tenant, by user",
      {"2026-W01", "2026-W05", {"period", "user"}, {"tenant0007"}, {}, {}});
  return 0;
}
