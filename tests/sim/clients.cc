// See clients.h.
#include "tests/sim/clients.h"

#include <csignal>

#include <fmt/core.h>

#include "common/proto/cluster.h"
#include "common/proto/job_change.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_submit.h"
#include "common/proto/partitions.h"
#include "common/proto/session.h"
#include "common/proto/steps.h"
#include "common/proto/tenancy.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "tests/sim/gpus.h"
#include "tests/sim/tenants.h"
#include "tests/sim/text.h"

namespace gantry::sim {
namespace {

constexpr std::string_view kBeginning = "the beginning";

bool is_submit(const core::ClientMessage& message) {
  return message.is<proto::SubmitJob>() || message.is<proto::SubmitTogether>();
}

bool asked_until_answered(const core::ClientMessage& message) {
  const auto* apply = message.get_if<proto::ApplyTenancy>();
  return is_submit(message) || (apply != nullptr && apply->comment == kBeginning);
}

// Draws a change of the request. Some are refused: they ask for more than there is, or the job
// runs.
proto::Reshape draw_reshape(Random& random) {
  proto::Reshape m;
  const auto number = [&](std::uint32_t most) {
    return static_cast<std::uint32_t>(random.between(1, most));
  };
  if (random.chance(300)) m.min_nodes = m.max_nodes = number(3);
  if (random.chance(400)) m.tasks = number(6);
  if (random.chance(400)) m.cpus_per_task = number(4);
  if (random.chance(300)) m.memory_per_node = std::int64_t{number(8)} << 28;
  if (random.chance(200)) m.memory_per_cpu = std::int64_t{number(8)} << 26;
  if (random.chance(200)) m.excluded_nodes.emplace();
  return m;
}

}  // namespace

Clients::Clients(Queue& queue, Random& random, Network& network, Trace& trace,
                 Controller& controller, const Settings& settings)
    : queue_(queue),
      random_(random),
      network_(network),
      trace_(trace),
      controller_(controller),
      settings_(settings) {
  for (std::size_t i = 0; i <= settings.clients_count; ++i) {
    auto client = std::make_unique<Client>();
    client->name = i == 0 ? "admin" : fmt::format("user{}", i);
    const auto uid = static_cast<std::uint32_t>(i == 0 ? 10 : 1000 + i);
    client->who.owner.uid = Uid(uid);
    client->who.owner.gid = Gid(uid);
    client->who.owner.user = client->name;
    client->who.role = i == 0 ? proto::Role::admin : proto::Role::user;
    names_.push_back(client->name);
    clients_.push_back(std::move(client));
  }
}

void Clients::start() {
  for (auto& client : clients_) {
    client->connection = controller_.connect(client->name);
    queue_.after(random_.spread(seconds(5)), [this, c = client.get()] { think(*c); });
  }
  if (!settings_.tenants) return;
  proto::ApplyTenancy all;
  all.documents = draw_tenants(random_, settings_);
  all.comment = kBeginning;
  clients_.front()->open = std::move(all);
  ask(*clients_.front());
}

core::Documents Clients::documents() const {
  return controller_.runs() ? controller_.core().state().tenancy.documents : core::Documents{};
}

bool Clients::idle() const {
  for (const auto& client : clients_)
    if (client->open && is_submit(*client->open)) return false;
  return true;
}

void Clients::think(Client& client) {
  if (stopped_) return;
  if (!client.open) {
    client.open = draw(client);
    client.requests.clear();
    client.tries = 0;
    ask(client);
  }
  const Duration pause{settings_.trouble.us * static_cast<std::int64_t>(clients_.size()) /
                       static_cast<std::int64_t>(settings_.jobs * 3)};
  queue_.after(random_.between(Duration{}, pause * 2), [this, &client] { think(client); });
}

void Clients::ask(Client& client) {
  const std::uint64_t request = next_request_++;
  client.requests.insert(request);
  ++client.tries;
  core::ClientRequest message{client.connection, request, client.who, *client.open};
  network_.send(client.name, false, Direction::to_controller,
                [this, message = std::move(message)] { controller_.take(message); });
  ask_again_later(client);
}

void Clients::ask_again_later(Client& client) {
  queue_.after(random_.between(seconds(5), seconds(30)),
               [this, &client, request = *client.requests.rbegin()] {
                 if (!client.open || !client.requests.contains(request)) return;
                 controller_.take(core::ConnectionClosed{client.connection});
                 client.connection = controller_.connect(client.name);
                 if (asked_until_answered(*client.open) || (client.tries < 4 && !stopped_))
                   return ask(client);
                 client.open.reset();  // the client gives up
               });
}

void Clients::reply(core::ConnectionId connection, std::uint64_t request,
                    const core::ReplyMessage& reply) {
  for (auto& client : clients_) {
    if (client->connection != connection || !client->requests.contains(request)) continue;
    if (const auto* made = reply.get_if<proto::SubmitReply>(); made && made->job != JobId{}) {
      client->jobs.push_back(made->job);
      if (const auto* asked = client->open->get_if<proto::SubmitJob>();
          asked != nullptr && asked->spec.array)
        arrays_.insert(made->job);
      if (const auto* together = client->open->get_if<proto::SubmitTogether>()) {
        het_sizes_[made->job] = together->parts.size();
        for (std::size_t i = 1; i < together->parts.size(); ++i)
          client->jobs.emplace_back(made->job.value() + i);
      }
      all_jobs_.push_back(made->job);
    }
    if (const auto* waited = reply.get_if<proto::WaitReply>())
      for (const proto::JobRow& row : waited->rows)
        // for an array the rows of its tasks count
        if ((row.phase == Phase::queued && !arrays_.contains(row.job)) ||
            row.phase == Phase::starting)
          trace_.broken(queue_.now(),
                        fmt::format("a wait was answered while job {} waits", row.job.value()));
    if (const auto* apply = client->open->get_if<proto::ApplyTenancy>())
      check_answer(*apply, reply);
    client->open.reset();
    client->requests.clear();
  }
}

void Clients::check_answer(const proto::ApplyTenancy& asked, const core::ReplyMessage& reply) {
  const auto* refused = reply.get_if<proto::ErrorReply>();
  if (refused != nullptr && asked.comment == kBeginning)
    trace_.broken(queue_.now(), "sound documents are refused: " + refused->message);
  const auto* planned = reply.get_if<proto::TenancyPlanned>();
  if (planned != nullptr && (planned->applied == asked.dry_run || asked.comment == kMustFail))
    trace_.broken(queue_.now(), "documents that should not have been are applied");
}

void Clients::say(core::ClientMessage message) {
  core::ClientRequest request{clients_.front()->connection, next_request_++, clients_.front()->who,
                              std::move(message)};
  network_.send(clients_.front()->name, false, Direction::to_controller,
                [this, request = std::move(request)] { controller_.take(request); });
}

void Clients::say_safely(core::ClientMessage message) {
  core::ClientRequest request{clients_.front()->connection, next_request_++, clients_.front()->who,
                              std::move(message)};
  network_.send_safely([this, request = std::move(request)] { controller_.take(request); });
}

// ---- what clients want

proto::JobRef Clients::draw_ref(Client& client) {
  const std::vector<JobId>& from = &client == clients_.front().get() ? all_jobs_ : client.jobs;
  proto::JobRef ref;
  const std::size_t recent = std::min<std::size_t>(from.size(), 12);
  ref.job = from[from.size() - 1 - random_.below(recent)];
  if (const auto het = het_sizes_.find(ref.job); het != het_sizes_.end() && random_.chance(300)) {
    ref.component = static_cast<std::uint32_t>(random_.below(het->second));
  } else if (random_.chance(150)) {
    const auto first = static_cast<std::uint32_t>(random_.below(6));
    ref.tasks.push_back({first, first + static_cast<std::uint32_t>(random_.below(5)), 1});
  }
  return ref;
}

core::ClientMessage Clients::draw(Client& client) {
  const bool admin = &client == clients_.front().get();
  if (settings_.tenants && random_.chance(admin ? 150 : 40))
    return admin ? draw_tenancy_change(random_, settings_, documents())
                 : draw_own_change(random_, documents(), client.name);
  if (admin && random_.chance(400)) return draw_cluster_change();
  const bool known = admin ? !all_jobs_.empty() : !client.jobs.empty();
  if (!known || (submits_ < settings_.jobs && random_.chance(550))) {
    proto::SubmitJob m = draw_job(client);
    if (!m.spec.array && random_.chance(120)) return draw_together(client, std::move(m));
    return m;
  }
  return draw_change(client);
}

proto::SubmitJob Clients::draw_job(Client& client) {
  const bool admin = &client == clients_.front().get();
  ++submits_;
  proto::SubmitJob m = draw_submit(random_, settings_, admin ? all_jobs_ : client.jobs,
                                   queue_.now(), fmt::format("{}-{}", client.name, submits_));
  if (settings_.tenants) draw_tenancy_of(random_, documents(), client.name, m.spec);
  if (settings_.gangs) draw_gang_of(random_, settings_, m.spec.shape);
  if (settings_.gpus && m.spec.shape.gpus_per_node == 0) draw_gpus_of(random_, m.spec.shape);
  return m;
}

// Draws a heterogeneous job of two or three components, the first of which is `first`.
core::ClientMessage Clients::draw_together(Client& client, proto::SubmitJob first) {
  proto::SubmitTogether m;
  m.parts.push_back(std::move(first));
  const auto more = random_.between(1, 2);
  for (std::int64_t i = 0; i < more; ++i) {
    proto::SubmitJob part = draw_job(client);
    part.script.clear();
    part.environment.clear();
    part.spec.kind = JobKind::allocation;
    part.spec.dependencies.clear();
    m.parts.push_back(std::move(part));
  }
  for (proto::SubmitJob& part : m.parts) {
    part.test_only = false;
    part.spec.array.reset();
    part.spec.shape.gpu_slice.clear();
    if (random_.chance(800)) part.spec.shape.required_nodes.clear();
  }
  return m;
}

core::ClientMessage Clients::draw_cancel(Client& client) {
  proto::CancelJobs m;
  if (random_.chance(60)) {
    m.filter.names = {fmt::format("name{}", random_.below(6))};
    m.all_mine = true;
  } else {
    m.filter.jobs.push_back(draw_ref(client));
  }
  if (random_.chance(300)) {
    m.signal = random_.chance(500) ? SIGTERM : SIGUSR1;
    m.scope = static_cast<proto::SignalScope>(random_.below(3));
  }
  return m;
}

core::ClientMessage Clients::draw_change(Client& client) {
  const auto what = random_.below(100);
  if (what < 35) return draw_cancel(client);
  if (what < 47) return proto::HoldJobs{{draw_ref(client)}};
  if (what < 59) return proto::ReleaseJobs{{draw_ref(client)}};
  if (what < 74) return proto::RequeueJobs{{draw_ref(client)}, random_.chance(200)};
  if (what < 88) return draw_update(client);
  if (what < 93)
    return proto::WaitJobs{{proto::JobRef{draw_ref(client).job, {}}}, random_.chance(300)};
  if (what < 96) {
    proto::EndAllocation m;
    m.job = draw_ref(client).job;
    return m;
  }
  proto::StepCreate m;
  m.job = draw_ref(client).job;
  m.name = "step";
  return m;
}

core::ClientMessage Clients::draw_update(Client& client) {
  if (settings_.changes && random_.chance(300))
    return proto::TopJobs{{draw_ref(client), draw_ref(client)}};
  proto::UpdateJob m;
  m.job = draw_ref(client);
  if (random_.chance(400)) m.time_limit = seconds(random_.between(10, 1500));
  if (random_.chance(300)) m.nice = static_cast<std::int32_t>(random_.below(200));
  if (random_.chance(200)) m.partition = random_.chance(500) ? "main" : "some";
  if (settings_.tenants && random_.chance(100))
    m.partition = fmt::format("t{}", random_.between(1, 4));
  if (random_.chance(200)) m.name = fmt::format("name{}", random_.below(6));
  if (random_.chance(200)) m.begin = queue_.now() + seconds(random_.between(1, 300));
  if (random_.chance(300)) m.array_max_running = static_cast<std::uint32_t>(random_.between(1, 5));
  if (&client == clients_.front().get() && random_.chance(300))
    m.priority = static_cast<std::uint32_t>(random_.below(1000));
  if (settings_.changes && random_.chance(600)) m.reshape = draw_reshape(random_);
  if (settings_.changes && random_.chance(200)) m.requeue = random_.chance(500);
  return m;
}

core::ClientMessage Clients::draw_cluster_change() {
  if (random_.chance(250)) {
    proto::UpdatePartition m;
    m.name = random_.chance(500) ? "main" : "some";
    m.up = random_.chance(700);
    return m;
  }
  proto::UpdateNodes m;
  const NodeConfig& node = random_.pick(settings_.config.nodes);
  m.nodes = {node.name};
  m.action = random_.chance(600)   ? proto::NodeAction::resume
             : random_.chance(800) ? proto::NodeAction::drain
                                   : proto::NodeAction::close;
  m.reason = "maintenance";
  // the change is for one of the node's GPUs instead of the node
  if (settings_.gpus && node.gpus > 0 && random_.chance(500)) {
    m.gpus = {std::to_string(random_.below(node.gpus))};
    if (m.action == proto::NodeAction::close) m.action = proto::NodeAction::drain;
  }
  return m;
}

}  // namespace gantry::sim
