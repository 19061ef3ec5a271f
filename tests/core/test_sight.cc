// A user of one tenant and a user of no tenant send every message that reads: no reply may hold
// anything of another tenant. The test first looks for the same words in an operator's replies,
// which must hold them.
#include <fmt/core.h>

#include <set>

#include "common/codec/codec.h"
#include "common/proto/any/message_visit.h"
#include "controller.h"

namespace gantry::core::test::sight_test {

Config config() {
  Config c;
  c.controller.state_dir = "/srv/hidden/ctld";
  c.controller.mail_program = "/srv/hidden/sendmail";
  c.controller.admins = {"root", "hiddenadmin"};
  c.noded.prolog = "/srv/hidden/prolog";
  PartitionConfig p;
  p.name = "site";
  p.is_default = true;
  for (const char* name : {"n1", "n2", "p3", "p4"}) {
    NodeConfig node;
    node.name = name;
    node.cpus = 8;
    node.memory = std::int64_t{16} << 30;
    c.nodes.push_back(node);
    p.nodes.emplace_back(name);
  }
  c.partitions.push_back(p);
  return c;
}

tenancy::Tenant tenant(const std::string& name, const std::string& user) {
  tenancy::Tenant t;
  t.name = name;
  t.grants.push_back({tenancy::Role::user, user, {}});
  t.projects.push_back({name + "lab", 1, {}});
  t.description = "of " + name;
  t.labels["cost-center"] = name + "cost";
  return t;
}

const Identity kRoot = identity("root", 0);
const Identity kAlice = identity("alice", 1000);  // a user of tenant red
const Identity kBob = identity("bob", 1001);      // a user of tenant blue, which owns node p3
const Identity kEve = identity("eve", 1002);      // a user of no tenant

bool refused(const ReplyMessage& reply) {
  return reply.is<proto::ErrorReply>();
}
std::string words_of(const ReplyMessage& reply) {
  const auto* error = reply.get_if<proto::ErrorReply>();
  return error == nullptr ? "" : error->message;
}

proto::SubmitJob submit(const std::string& partition) {
  proto::SubmitJob m;
  m.spec.name = "job";
  m.spec.partition = partition;
  m.spec.work_dir = "/home/x";
  m.spec.time_limit = hours(1);
  m.script = "#!/bin/sh\n";
  return m;
}

struct Cluster {
  Cluster() : controller(config()) {
    proto::ApplyTenancy apply;
    apply.comment = "blue pays late";
    apply.documents = {tenant("red", "alice"), tenant("blue", "bob")};
    tenancy::NodePool pool;
    pool.name = "bluepool";
    pool.nodes = "p[3-4]";
    pool.tenant = "blue";
    apply.documents.emplace_back(pool);
    tenancy::Budget budget;
    budget.name = "bluemoney";
    budget.tenant = "blue";
    budget.amount = Money{1'000'000'000};
    apply.documents.emplace_back(budget);
    tenancy::PriceBook book;
    book.name = "prices";
    book.currency = "EUR";
    book.cpu = Money{1'000'000};
    tenancy::PricePlan plan;
    plan.name = "blueplan";
    plan.factor = 500;
    plan.tenants = {"blue"};
    book.plans.push_back(plan);
    apply.documents.emplace_back(book);
    const auto applied = controller.ask(kRoot, apply);
    REQUIRE_MESSAGE(!refused(applied), words_of(applied));
    proto::SubmitJob job = submit("blue");
    job.spec.name = "bluejob";
    const auto queued = controller.ask(kBob, std::move(job));
    REQUIRE_MESSAGE(!refused(queued), words_of(queued));
    proto::MakeReservation window;
    window.name = "bluewindow";
    window.nodes = {"p3"};
    window.length = hours(1);
    window.tenants = {"blue"};
    window.users = {"bob"};
    window.comment = "for blue";
    const auto made = controller.ask(kRoot, window);
    REQUIRE_MESSAGE(!refused(made), words_of(made));
    proto::UpdateNodes drain{{"p4"}, proto::NodeAction::drain, "blue broke it"};
    REQUIRE(!refused(controller.ask(kRoot, drain)));
  }
  Controller controller;
};

// ---- every message of messages.def with which a client reads

constexpr bool k_read = true, k_write = false, k_reply = false, k_report = false, k_order = false,
               k_session = false;

struct Asked {
  std::string replies;
  std::size_t messages = 0;
};

template <class Message, bool reads>
void ask_one(Controller& controller, const Identity& who, Asked& out) {
  if constexpr (reads && ClientMessage::takes<Message>) {
    Message message{};
    if constexpr (std::is_same_v<Message, proto::QueryLedger>) {
      message.first = message.last = "this-month";
      message.by = {"tenant", "user", "project"};
    }
    if constexpr (std::is_same_v<Message, proto::ListNodes>) message.gpus = true;
    if constexpr (std::is_same_v<Message, proto::GetTenancy>) message.with_nodes = true;
    if constexpr (std::is_same_v<Message, proto::ShowJob>) message.job = {JobId(1), {}};
    if constexpr (std::is_same_v<Message, proto::WaitJobs>) message.jobs = {{JobId(99), {}}};
    ++out.messages;
    proto::visit([&](const auto& reply) { out.replies += codec::to_json(reply) + "\n"; },
                 controller.ask(who, std::move(message)));
  }
}

Asked ask_all(Controller& controller, const Identity& who) {
  Asked out;
#define X(Type, number, from, kind, ...) ask_one<proto::Type, k_##kind>(controller, who, out);
#include "common/proto/messages.def"
#undef X
  return out;
}

TEST_CASE("nobody reads another tenant's names, nodes, users or jobs, or the daemons' files") {
  Cluster cluster;
  const Asked all = ask_all(cluster.controller, kRoot);
  CHECK(all.messages >= 20);
  for (const Identity& who : {kAlice, kEve}) {
    const std::string seen = ask_all(cluster.controller, who).replies;
    for (const char* word :
         {"blue", "bob", "p3", "p4", "/srv/hidden", "hiddenadmin", "bluejob", "bluewindow",
          "bluepool", "bluemoney", "blueplan", "bluecost", "bluelab"}) {
      CAPTURE(who.owner.user);
      CAPTURE(word);
      CHECK(all.replies.find(word) != std::string::npos);
      const std::size_t at = seen.find(word);
      CHECK_MESSAGE(at == std::string::npos,
                    seen.substr(at < 200 ? 0 : at - 200, at == std::string::npos ? 0 : 300));
    }
  }
  const std::string own = ask_all(cluster.controller, kBob).replies;
  for (const char* word : {"bluewindow", "bluepool", "bluemoney", "bluejob", "p3"})
    CHECK(own.find(word) != std::string::npos);
  CHECK(own.find("\"red\"") == std::string::npos);
}

TEST_CASE(
    "a question about a hidden name gets the same answer as one about a name that does not exist") {
  Cluster cluster;
  // Each request is made with a name of the other tenant and with a name that does not exist.
  const auto same = [&](const Identity& who, const std::string& hidden, const std::string& none,
                        auto ask) {
    std::string first = words_of(cluster.controller.ask(who, ask(hidden)));
    const std::string second = words_of(cluster.controller.ask(who, ask(none)));
    CHECK(!second.empty());
    for (std::size_t at; (at = first.find(hidden)) != std::string::npos;)
      first.replace(at, hidden.size(), none);
    CHECK(first == second);
  };
  for (const Identity& who : {kAlice, kEve}) {
    same(who, "blue", "nosuch", [](const std::string& name) { return submit(name); });
    same(who, "blue", "nosuch", [](const std::string& name) { return proto::TenantUsage{{name}}; });
    same(who, "p3", "n9", [](const std::string& name) {
      return proto::ListNodes{{name}, {}, true};
    });
    same(who, "bluewindow", "nosuch",
         [](const std::string& name) { return proto::ListReservations{{name}}; });
    same(who, "p3", "n9", [](const std::string& name) {
      proto::ListJobs list;
      list.filter.nodes = {name};
      return list;
    });
    same(who, "blue", "nosuch", [](const std::string& name) {
      proto::AskIncrease ask;
      ask.wanted.tenant = name;
      ask.wanted.budget = "bluemoney";
      ask.wanted.amount = Money{1};
      return ask;
    });
    const std::string queue = who.owner.user == "alice" ? "red" : "site";
    for (const bool excluded : {false, true})
      same(who, "p3", "n9", [&](const std::string& name) {
        proto::SubmitJob m = submit(queue);
        (excluded ? m.spec.shape.excluded_nodes : m.spec.shape.required_nodes) = {name};
        return m;
      });
    same(who, "bluewindow", "nosuch", [&](const std::string& name) {
      proto::SubmitJob m = submit(queue);
      m.spec.reservation = name;
      return m;
    });
  }
}

TEST_CASE(
    "a second mistake in a request does not reveal whether a name is hidden or does not exist") {
  Cluster cluster;
  const auto same = [&](const Identity& who, const std::string& hidden, const std::string& none,
                        auto ask) {
    std::string first = words_of(cluster.controller.ask(who, ask(hidden)));
    const std::string second = words_of(cluster.controller.ask(who, ask(none)));
    CAPTURE(who.owner.user);
    CHECK(!second.empty());
    for (std::size_t at; (at = first.find(hidden)) != std::string::npos;)
      first.replace(at, hidden.size(), none);
    CHECK(first == second);
  };
  REQUIRE(!refused(cluster.controller.ask(kAlice, submit("red"))));
  for (const Identity& who : {kAlice, kEve}) {
    for (const std::string partition : {"", "site", "red"}) {
      CAPTURE(partition);
      same(who, "blue", "nosuch", [&](const std::string& name) {
        proto::SubmitJob m = submit(partition);
        m.spec.account = name;
        return m;
      });
    }
    for (const bool second : {false, true})
      same(who, "p3", "n9", [&](const std::string& name) {
        proto::SubmitTogether m;
        m.parts = {submit("red"), submit("nosuch")};
        m.parts[second ? 1 : 0].spec.shape.required_nodes = {name};
        m.parts[1].spec.kind = JobKind::allocation;
        return m;
      });
    same(who, "p3", "n9", [&](const std::string& name) {
      proto::UpdateJob m;
      m.job = {JobId(2), {}};
      m.nice = -2'000'000'000;
      m.reshape.emplace().required_nodes = {name};
      return m;
    });
    same(who, "p3", "n9", [&](const std::string& name) {
      proto::ListJobs m;
      m.filter.users.assign(2000, "x");
      m.filter.nodes = {name};
      return m;
    });
    same(who, "bluewindow", "nosuch", [&](const std::string& name) {
      proto::SubmitJob m = submit(who.owner.user == "alice" ? "red" : "site");
      m.spec.reservation = name;
      m.spec.time_limit = minutes(30);
      m.spec.deadline = Instant{hours(500'000).us} + minutes(40);
      return m;
    });
  }
}

TEST_CASE("users see all site partitions, but their lists name no other tenant") {
  Config c = config();
  const auto add = [&](const std::string& name) -> PartitionConfig& {
    PartitionConfig p = c.partitions[0];
    p.is_default = false;
    p.name = name;
    return c.partitions.emplace_back(std::move(p));
  };
  add("accounts").allow_accounts = {"blue", "bluelab"};
  add("denied").deny_accounts = {"blue", "red"};
  add("groups").allow_groups = {"wheel"};
  add("classes").allow_qos = {"best-effort"};
  Controller controller(c);
  proto::ApplyTenancy apply;
  apply.documents = {tenant("red", "alice"), tenant("blue", "bob")};
  REQUIRE(!refused(controller.ask(kRoot, apply)));
  const auto partitions_of = [&](const Identity& who, std::optional<std::uint32_t> from) {
    return controller.ask(who, proto::ListPartitions{from}).get<proto::ListPartitionsReply>();
  };
  for (const Identity& who : {kAlice, kEve}) {
    for (const std::optional<std::uint32_t> from : {std::optional<std::uint32_t>(), {0}}) {
      const proto::ListPartitionsReply reply = partitions_of(who, from);
      std::set<std::string> names;
      for (const proto::PartitionRow& p : reply.partitions) names.insert(p.name);
      for (const char* name : {"site", "accounts", "denied", "groups", "classes"})
        CHECK(names.contains(name));
      const std::string text = codec::to_json(reply);
      CHECK(text.find("blue") == std::string::npos);
      CHECK(text.find("\"others\"") != std::string::npos);
      CHECK(text.find("wheel") != std::string::npos);
    }
    CHECK(controller.ask(who, proto::ListNodes{}).get<proto::ListNodesReply>().nodes.size() == 4);
    for (const char* name : {"accounts", "denied"}) {
      const std::string words = words_of(controller.ask(who, submit(name)));
      CHECK(!words.empty());
      CHECK(words.find("blue") == std::string::npos);
    }
    for (const char* name : {"groups", "classes"})
      CHECK(!words_of(controller.ask(who, submit(name))).empty());
  }
  for (const proto::PartitionRow& p : partitions_of(kAlice, {}).partitions)
    if (p.name == "denied") CHECK(p.deny_accounts == std::vector<std::string>{"red", "others"});
  for (const Identity& who : {kBob, kRoot})
    for (const proto::PartitionRow& p : partitions_of(who, {}).partitions)
      if (p.name == "accounts")
        CHECK(p.allow_accounts == std::vector<std::string>{"blue", "bluelab"});
}

TEST_CASE("a site's partition lists only the nodes that the asker may use") {
  Cluster cluster;
  const auto nodes_of = [&](const Identity& who) {
    std::string out;
    const ReplyMessage reply = cluster.controller.ask(who, proto::ListPartitions{});
    for (const proto::PartitionRow& p : reply.get<proto::ListPartitionsReply>().partitions) {
      out += p.name + ":";
      for (const std::string& node : p.nodes) out += " " + node;
      out += "\n";
    }
    return out;
  };
  CHECK(nodes_of(kEve) == "site: n1 n2\n");
  CHECK(nodes_of(kAlice) == "site: n1 n2\nred: n1 n2\n");
  CHECK(nodes_of(kBob) == "site: n1 n2 p3 p4\nblue: n1 n2 p3 p4\n");
  CHECK(nodes_of(kRoot) == "site: n1 n2 p3 p4\nblue: n1 n2 p3 p4\nred: n1 n2\n");
}

}  // namespace gantry::core::test::sight_test
