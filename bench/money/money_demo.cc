// A month of three teams in virtual time. It runs through the controller's core and the scheduler,
// and the result is the bills.
//
//   money_demo EXAMPLES DIR     EXAMPLES is docs/examples/money; the bills are written to DIR
//
// Jobs come at random, but are the same in each run. In the middle of the month A100 GPUs get
// cheaper. Five days later the node a2 loses its power, and the jobs that it ran are credited.
#include <fmt/core.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <set>

#include "cli/bill/invoice.h"
#include "common/proto/attempt.h"
#include "common/proto/job_submit.h"
#include "common/proto/ledger.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "common/proto/tenancy.h"
#include "config/tenancy/files/load.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/change.h"
#include "ctld/sched/cycle/schedule.h"

namespace gantry::core {
namespace {

// The demo starts on 1 October 2026 at 0:00 in Prague, and ends when the month's bills are final.
constexpr Instant kBegin{1'790'805'600'000'000};
// The month has one hour more, because clocks go back on the 25th.
constexpr Duration kMonth = hours(24 * 31 + 1);
constexpr Instant kEnd = kBegin + kMonth + hours(60);

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "money_demo: {}\n", why);
  std::exit(1);
}

Config cluster() {
  Config config;
  PartitionConfig main;
  main.name = "main";
  main.is_default = true;
  for (const std::string name : {"a1", "a2", "a3", "v1", "c1"}) {
    NodeConfig node;
    node.name = name;
    node.cpus = 64;
    node.memory = std::int64_t{512} << 30;
    node.gpus = name == "c1" ? 0 : 8;
    node.gpu_model = name[0] == 'a' ? "a100" : name[0] == 'v' ? "v100" : "";
    main.nodes.push_back(name);
    config.nodes.push_back(node);
  }
  config.partitions.push_back(main);
  // The nodes of this demo send no heartbeats, so they must never count as silent.
  config.controller.heartbeat = hours(24 * 365);
  config.controller.node_timeout = hours(24 * 365 * 2);
  return config;
}

struct Team {
  std::string name;
  std::vector<std::string> users, projects;
  double jobs_per_day = 0;
};
const std::vector<Team> kTeams{{"fraud", {"ann", "bob"}, {"retraining", "research"}, 16},
                               {"search", {"eve", "gus"}, {"ranking"}, 9},
                               {"lab", {"dan", "fay"}, {"theses"}, 12}};

class Demo {
 public:
  explicit Demo(std::string examples) : examples_(std::move(examples)), core_(cluster()) {}

  void play() {
    if (!core_.start(now_)) give_up("the core does not start");
    for (const NodeConfig& node : config_.nodes) enrol(node.name, "boot1");
    turn();
    for (const sched::Change& change : core_.full_view()) replica_.apply(change);
    apply_files();
    draw_jobs();
    at(kBegin + hours(24 * 14), [this] { cheaper(); });
    at(kBegin + hours(24 * 19 + 9), [this] { enrol("a2", "boot2"); });
    at(kBegin + kMonth, [this] { meter(); });
    while (!story_.empty() && story_.top().at <= kEnd) {
      Entry next = story_.top();
      story_.pop();
      now_ = std::max(now_, next.at);
      next.what();
      turn();
    }
    now_ = kEnd;
  }

  proto::LedgerReply bill(const std::vector<std::string>& tenants) {
    proto::QueryLedger query;
    query.first = query.last = "2026-10";
    query.by = {"period", "tenant", "project", "user", "item"};
    query.tenants = tenants;
    proto::LedgerReply out;
    ask("admin", query);
    Turn answer = core_.take_turn();
    for (Reply& reply : answer.replies)
      if (auto* ledger = reply.message.get_if<proto::LedgerReply>()) out = std::move(*ledger);
    return out;
  }

  [[nodiscard]] std::uint64_t jobs() const { return core_.state().last_job.value(); }
  [[nodiscard]] std::size_t terminated() const { return terminated_.size(); }

 private:
  struct Entry {
    Instant at;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const Entry& o) const { return std::tie(at, number) > std::tie(o.at, o.number); }
  };

  void at(Instant when, std::function<void()> what) {
    story_.push({when, next_++, std::move(what)});
  }

  void ask(const std::string& user, ClientMessage message) {
    ClientRequest request;
    request.connection = ConnectionId(1);
    request.request = next_++;
    request.who.owner.user = user;
    request.who.owner.uid = Uid(user == "admin" ? 10 : 1000 + static_cast<unsigned>(user[0]));
    request.who.role = user == "admin" ? proto::Role::admin : proto::Role::user;
    request.message = std::move(message);
    core_.step(now_, std::move(request));
  }

  void tell(const std::string& node, NodeMessage message) {
    core_.step(now_, FromNode{node, std::move(message)});
  }

  void enrol(const std::string& node, const std::string& boot) {
    proto::NodeRegister m;
    m.node = node;
    m.version = "demo";
    m.boot_id = boot;
    m.address = node + ":1";
    for (std::uint16_t cpu = 0; cpu < 64; ++cpu) m.cpus.push_back(cpu);
    m.memory = std::int64_t{512} << 30;
    tell(node, std::move(m));
  }

  void apply_files() {
    const std::vector<std::string> files{examples_ + "/tenants.yaml", examples_ + "/prices.yaml"};
    auto loaded = tenancy::load_documents(files, {});
    if (!loaded) give_up(loaded.error().message);
    documents_ = loaded->documents;
    proto::ApplyTenancy apply;
    apply.documents = documents_;
    ask("admin", std::move(apply));
    turn();
  }

  // Imports the figures of the file server.
  void meter() {
    proto::ImportMeter m;
    m.name = "storage-2026-10.csv";
    for (const auto& [tenant, project, amount] :
         {std::tuple("fraud", "retraining", 20'480'500), std::tuple("search", "ranking", 8'192'000),
          std::tuple("lab", "theses", 1'024'250)})
      m.lines.push_back({static_cast<std::uint32_t>(m.lines.size() + 2), "2026-10-31", tenant,
                         project, "", "storage-gib-month", amount});
    ask("admin", std::move(m));
  }

  void cheaper() {
    for (tenancy::Document& document : documents_)
      if (auto* book = std::get_if<tenancy::PriceBook>(&document)) {
        book->gpu["a100"] = Money{2'300'000};
        proto::ApplyTenancy apply;
        apply.documents = {document};
        apply.comment = "A100 are cheaper";
        ask("admin", std::move(apply));
      }
  }

  void draw_jobs() {
    // This generator gives the same numbers with every standard library.
    std::mt19937_64 random(2026);
    const auto part = [&] { return static_cast<double>(random() >> 11) / 9007199254740992.0; };
    for (const Team& team : kTeams) {
      Instant when = kBegin - hours(6);
      while (when < kBegin + kMonth) {
        when =
            when +
            seconds(static_cast<std::int64_t>(-std::log(1 - part()) * 86'400 / team.jobs_per_day));
        proto::SubmitJob m;
        m.spec.name = "train";
        m.spec.partition = team.name;
        m.spec.account = team.projects[random() % team.projects.size()];
        m.spec.work_dir = "/home";
        const bool cpu_only = part() < 0.2;
        m.spec.shape.gpus_per_node = cpu_only ? 0 : 1u << (random() % 4);
        m.spec.shape.cpus_per_task = cpu_only ? 16 : 4 * m.spec.shape.gpus_per_node;
        m.spec.shape.memory_per_node = std::int64_t{8} * m.spec.shape.cpus_per_task << 30;
        m.spec.time_limit = hours(24);
        if (team.name == "fraud" && part() < 0.1) m.spec.priority_class = "production-critical";
        m.script = "#!/bin/sh\n";
        const Duration length = minutes(20 + static_cast<std::int64_t>(part() * part() * 1'200));
        const std::string user = team.users[random() % team.users.size()];
        at(std::max(when, kBegin), [this, user, m, length] {
          lengths_.push_back(length);
          ask(user, m);
        });
      }
    }
  }

  // Takes the output of the core and makes plans on demand, until the core wants nothing more.
  void turn() {
    for (;;) {
      Turn out = core_.take_turn();
      for (const sched::Change& change : out.changes) replica_.apply(change);
      for (const Reply& reply : out.replies)
        if (const auto* error = reply.message.get_if<proto::ErrorReply>()) give_up(error->message);
      for (Order& order : out.orders) obey(order.node, order.message);
      (void)core_.take_fold();
      wake_at(out.wake);
      if (!out.schedule) return;
      core_.step(now_, PlanReady{sched::schedule(replica_, now_, {})});
    }
  }

  void wake_at(std::optional<Instant> when) {
    if (!when || (armed_ && *armed_ > now_ && *armed_ <= *when)) return;
    armed_ = when;
    at(*when, [this, when] {
      if (armed_ != when) return;  // An earlier wake-up has replaced this one.
      armed_.reset();
      core_.step(now_, Tick{});
    });
  }

  void obey(const std::string& node, OrderMessage& order) {
    if (const auto* launch = order.get_if<proto::Launch>()) {
      const proto::AttemptKey key = launch->key;
      at(now_ + seconds(2), [this, node, key] { tell(node, proto::Started{key, now_}); });
      const Duration length = lengths_.at((key.job.value() - 1) % lengths_.size());
      at(now_ + length, [this, node, key] { exits(node, key, 0); });
    } else if (const auto* end = order.get_if<proto::Terminate>()) {
      terminated_.insert(end->key);
      at(now_ + seconds(10), [this, node, key = end->key] { exits(node, key, 15); });
    }
  }

  void exits(const std::string& node, const proto::AttemptKey& key, int signal) {
    proto::ExitReport m;
    m.key = key;
    m.exit.signal = signal;
    m.ended = now_;
    tell(node, std::move(m));  // The core ignores a second report of the same attempt.
  }

  const std::string examples_;
  const Config config_ = cluster();
  Core core_;
  sched::Replica replica_;
  Instant now_ = kBegin;
  std::priority_queue<Entry> story_;
  std::uint64_t next_ = 1;
  std::optional<Instant> armed_;
  std::vector<Duration> lengths_;  // the lengths of the jobs, in the order of their submits
  std::vector<tenancy::Document> documents_;
  std::set<proto::AttemptKey> terminated_;
};

void write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) give_up("cannot write " + path);
}

}  // namespace
}  // namespace gantry::core

int main(int argc, char** argv) {
  using namespace gantry;
  if (argc != 3) core::give_up("usage: money_demo EXAMPLES DIR");
  const std::string dir = argv[2];
  core::Demo demo(argv[1]);
  demo.play();
  fmt::print("{} jobs in October 2026; {} times one had to leave for another\n\n", demo.jobs(),
             demo.terminated());
  Money sum;
  for (const core::Team& team : core::kTeams) {
    const cli::Invoice invoice =
        cli::make_invoice(team.name, "2026-10", "demo", demo.bill({team.name}));
    core::write(fmt::format("{}/{}-2026-10.html", dir, team.name), cli::invoice_page(invoice));
    core::write(fmt::format("{}/{}-2026-10.pdf", dir, team.name), cli::invoice_pdf(invoice));
    sum += invoice.cost - invoice.credit;
    fmt::print("{:<8} {:>14} EUR, {:>10} credited   {}/{}-2026-10.pdf\n", team.name,
               format_money(invoice.cost - invoice.credit, 2), format_money(invoice.credit, 2), dir,
               team.name);
  }
  Money all;
  for (const proto::LedgerRow& row : demo.bill({}).rows) all += row.cost - row.credit;
  fmt::print("{:<8} {:>14} EUR\n", "all", format_money(all, 2));
  if (all != sum) core::give_up("the bills do not add up to the ledger");
  return 0;
}
