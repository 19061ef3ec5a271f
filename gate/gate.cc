#include "gate/gate.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "cli/session.h"
#include "common/codec/codec.h"
#include "gate/plan/config_text.h"

namespace gantry::gate {

namespace {

constexpr Duration kLook = milliseconds(100);
constexpr Duration kSync = milliseconds(250);  // between two questions to the controller
constexpr Duration kAwaySync = seconds(1);     // while it does not answer
constexpr Duration kProbe = milliseconds(20);  // how often it is looked which probes are due
constexpr Duration kWeigh = seconds(1);
constexpr unsigned kFilesOfAGate = 256;

Result<void> make_directory(const std::string& path, unsigned mode) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    (void)::mkdir(path.substr(0, at).c_str(), 0755);
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    return fail(ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
  (void)::chmod(path.c_str(), mode);
  return {};
}

// HAProxy does not start if it may not open twice as many files as connections.
unsigned connections_of(const GateConfig& config) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return config.connections;
  const rlim_t wanted = rlim_t{2} * config.connections + kFilesOfAGate;
  if (files.rlim_max < wanted) {
    const rlimit more{wanted, wanted};
    if (::setrlimit(RLIMIT_NOFILE, &more) == 0) files = more;
  }
  const rlim_t most = (files.rlim_max - std::min<rlim_t>(files.rlim_max, kFilesOfAGate)) / 2;
  return static_cast<unsigned>(std::clamp<rlim_t>(most, 10, config.connections));
}

Settings settings_of(const GateConfig& config) {
  Settings s;
  s.listen = config.listen;
  s.listen_tls = config.listen_tls;
  s.certificate = config.certificate;
  s.state_dir = config.state_dir;
  s.threads = config.threads;
  s.connections = connections_of(config);
  if (::geteuid() == 0 && config.user != "none") s.user = config.user;
  return s;
}

std::string version_id(const proto::GateSample& s) {
  return s.tenant + ":" + s.service + ":" + s.version;
}

constexpr Duration kAnswerTime = seconds(10);

}  // namespace

Result<std::unique_ptr<Gate>> Gate::open(const GateConfig& config, const std::string& table_file,
                                         loop::Loop& loop, const Logger& log) {
  std::unique_ptr<Gate> gate(new Gate(config, table_file, loop, log));
  TRY(gate->prepare());
  return gate;
}

Result<void> Gate::prepare() {
  TRY(make_directory(config_.state_dir, 0711));
  TRY(make_directory(config_.state_dir + "/keys", 0700));
  const Settings settings = settings_of(config_);
  unsigned writer = ::geteuid();
  if (!settings.user.empty()) {
    const passwd* user = ::getpwnam(settings.user.c_str());
    if (user == nullptr)
      return fail(ErrorCode::not_found,
                  fmt::format("gate.user: there is no user `{}`; `none` lets HAProxy stay root",
                              settings.user));
    writer = user->pw_uid;
  }
  if (!settings.listen_tls.empty() && settings.certificate.empty())
    return fail(ErrorCode::invalid_argument, "gate.listen_tls needs gate.certificate");
  if (::access(config_.haproxy.c_str(), X_OK) != 0)
    return fail(ErrorCode::not_found,
                fmt::format("gate.haproxy: {}: {}", config_.haproxy, std::strerror(errno)));
  ASSIGN(reader, LogReader::open(loop_, config_.state_dir + "/log.sock", writer,
                                 [this](std::string_view text) { line(text); }));
  reader_ = std::move(*reader);
  haproxy_ =
      std::make_unique<Haproxy>(Haproxy::Options{config_.haproxy, settings, config_.stop_time},
                                loop_, log_, [this] { reconcile(); });
  haproxy_->adopt();
  if (const std::string kept = text_of(config_.state_dir + "/table.msgpack"); !kept.empty())
    if (auto table = codec::decode<proto::GateTable>(kept)) {
      take_table(std::move(*table));
      adopt_health();
      log_.info("begins with its last table", {{"services", table_.services.size()}});
    }
  if (fixed_table_.empty())
    link_ = std::make_unique<Link>(
        loop_, [this](Result<proto::GateTable>&& answer) { answered(std::move(answer)); });
  timers_.push_back(loop_.every(kLook, [this] { look(); }));
  timers_.push_back(loop_.every(kProbe, [this] { probe(); }));
  reconcile();
  return {};
}

// ---- requests

void Gate::line(std::string_view text) {
  if (text.starts_with("H ")) {  // a request waits for a first replica: the controller must know
    ask_soon_ = true;
    sync();
    return;
  }
  if (const auto request = read_request(text)) samples_.add(*request, monotonic());
}

void Gate::look() {
  if (!fixed_table_.empty()) read_fixed_table();
  haproxy_->look();
  running_.clear();
  for (const Seen& process : haproxy_->seen())
    for (const auto& [name, backend] : process)
      for (const auto& [server, s] : backend.servers) running_[key_of_server(server)] += s.running;
  note_taken_in();
  const Instant now = monotonic();
  if (now >= next_weights_) weigh();
  reconcile();
  if (!haproxy_->held().empty()) ask_soon_ = true;
  sync();
}

void Gate::note_taken_in() {
  if (!haproxy_->serves()) return;
  const std::vector<Seen> all = haproxy_->seen();  // the newest process comes first
  for (const auto& [name, backend] : all.front())
    for (const auto& [server, s] : backend.servers) {
      const auto it = replicas_.find(key_of_server(server));
      if (it != replicas_.end() && s.state == ServerState::ready) it->second.taken_in = true;
    }
}

// ---- the controller

proto::SyncGate Gate::question() {
  proto::SyncGate out;
  out.gate = config_.name;
  out.address = config_.address;
  out.revision = has_table_ ? table_.revision : 0;
  out.samples = samples_.take(monotonic(), haproxy_->seen(), haproxy_->held());
  for (const proto::GateSample& sample : out.samples) {
    proto::GateSample& total = totals_[version_id(sample)];
    const auto before = total;
    total = sample;
    total.requests += before.requests;
    total.errors += before.errors;
    total.refused += before.refused;
    total.bytes_in += before.bytes_in;
    total.bytes_out += before.bytes_out;
    total.times.resize(std::max(total.times.size(), before.times.size()));
    for (std::size_t i = 0; i < before.times.size(); ++i) total.times[i] += before.times[i];
  }
  for (const auto& [key, replica] : replicas_) {
    proto::ReplicaReport report;
    report.key = key;
    report.health = replica.health == proto::ReplicaHealth::ready && !replica.taken_in
                        ? proto::ReplicaHealth::starting
                        : replica.health;
    report.why = replica.why;
    if (const auto it = running_.find(key); it != running_.end()) report.running = it->second;
    if (const auto it = weights_.find(key); it != weights_.end()) report.weight = it->second;
    const auto times = samples_.replicas().find(server_name(key));
    if (times != samples_.replicas().end())
      report.response = microseconds(static_cast<std::int64_t>(times->second.mean_us));
    out.replicas.push_back(std::move(report));
  }
  return out;
}

void Gate::sync() {
  const Instant now = monotonic();
  if (!link_ || !link_->is_free() || (now < next_sync_ && !(ask_soon_ && !away_))) return;
  next_sync_ = now + (away_ ? kAwaySync : kSync);
  ask_soon_ = false;
  proto::SyncGate asked = question();
  sent_ = asked.samples;
  link_->ask(std::move(asked));
}

void Gate::answered(Result<proto::GateTable>&& answer) {
  if (!answer) {
    if (!away_)
      log_.warning("the controller does not answer; the gate goes on with its table",
                   {{"why", answer.error().message}});
    away_ = true;
    // Requests are not repeated after a refusal, because they would be refused again.
    if (answer.error().code == ErrorCode::unavailable ||
        answer.error().code == ErrorCode::timed_out)
      samples_.put_back(std::move(sent_));
    sent_.clear();
    return;
  }
  if (away_) log_.info("the controller answers again");
  away_ = false;
  sent_.clear();
  if (answer->unchanged && has_table_) return;
  take_table(std::move(*answer));
  keep_table();
  reconcile();
}

void Gate::take_table(proto::GateTable&& table) {
  table_ = std::move(table);
  has_table_ = true;
  std::map<proto::AttemptKey, Probed> kept;
  for (const proto::GateService& service : table_.services)
    for (const proto::GateReplica& replica : service.replicas) {
      const auto it = replicas_.find(replica.key);
      kept[replica.key] = it == replicas_.end() ? Probed{} : it->second;
    }
  for (const auto& [key, replica] : replicas_)
    if (!kept.contains(key)) {
      prober_.drop("r" + server_name(key));
      prober_.drop("l" + server_name(key));
      samples_.forget_replica(server_name(key));
      weights_.erase(key);
    }
  replicas_ = std::move(kept);
  if (auto r = write_keys(); !r) log_.error("keys of tokens", {{"why", r.error().message}});
}

void Gate::keep_table() {
  if (auto r = write_private(config_.state_dir + "/table.msgpack", codec::encode(table_), true); !r)
    log_.error("the table is not kept", {{"why", r.error().message}});
}

// For a gate without a controller: for sites with other means, and for tests.
void Gate::read_fixed_table() {
  std::string text = text_of(fixed_table_);
  if (text == fixed_text_) return;
  fixed_text_ = text;
  auto table = codec::from_json<proto::GateTable>(text);
  if (!table) return log_.error("table", {{"file", fixed_table_}, {"why", table.error().message}});
  take_table(std::move(*table));
  keep_table();
}

Result<void> Gate::write_keys() {
  if (table_.keys == known_keys_ && !keys_.empty()) return {};
  ASSIGN(pems, pem_of_keys(table_.keys));
  std::vector<TokenKey> keys;
  for (const auto& [id, pem] : *pems) {
    if (!is_plain(id) || id.find('/') != std::string::npos) continue;
    const std::string path = config_.state_dir + "/keys/" + id + ".pem";
    TRY(write_private(path, pem, true));
    keys.push_back({id, path});
  }
  keys_ = std::move(keys);
  known_keys_ = table_.keys;
  return {};
}

// ---- replicas

// The present servers of a HAProxy that was taken over count as ready.
void Gate::adopt_health() {
  for (const Seen& process : haproxy_->seen())
    for (const auto& [name, backend] : process)
      for (const auto& [server, s] : backend.servers) {
        const auto it = replicas_.find(key_of_server(server));
        if (it != replicas_.end() && s.state == ServerState::ready)
          it->second.health = proto::ReplicaHealth::ready;
      }
}

void Gate::probe() {
  for (const proto::GateService& service : table_.services)
    for (const proto::GateReplica& replica : service.replicas)
      if (!replica.draining) probe_one(service, replica);
}

void Gate::probe_one(const proto::GateService& service, const proto::GateReplica& replica) {
  const Instant now = monotonic();
  const auto ask = [&](const char* kind, const tenancy::ServiceProbe& how, ProbeCount& count,
                       auto answered) {
    if (count.asked || now < count.next) return;
    count.asked = true;
    Question question{
        replica.address,  replica.port,
        replica.password, service.route.hosts.empty() ? service.name : service.route.hosts.front(),
        how.path,         how.timeout};
    prober_.ask(kind + server_name(replica.key), question,
                [this, key = replica.key, how, answered](const ProbeAnswer& answer) {
                  const auto it = replicas_.find(key);
                  if (it == replicas_.end()) return;
                  const auto before = it->second.health;
                  answered(it->second, how, answer, monotonic());
                  changed(key, before);
                });
  };
  Probed& probed = replicas_.at(replica.key);
  ask("r", service.route.ready, probed.ready, ready_answered);
  if (!service.route.live.path.empty() && probed.health != proto::ReplicaHealth::starting)
    ask("l", service.route.live, probed.live, live_answered);
}

void Gate::changed(const proto::AttemptKey& key, proto::ReplicaHealth before) {
  const Probed& replica = replicas_.at(key);
  if (replica.health == before) return;
  log_.info("replica", {{"job", key.job},
                        {"attempt", key.attempt},
                        {"health", enum_name(replica.health)},
                        {"why", replica.why}});
  ask_soon_ = true;
  reconcile();
  sync();
}

void Gate::weigh() {
  const Instant now = monotonic();
  next_weights_ = now + kWeigh;
  for (const proto::GateService& service : table_.services) {
    if (service.route.balance != tenancy::BalancePolicy::latency) continue;
    std::map<std::string, std::map<std::string, std::uint32_t>> versions;
    for (const proto::GateReplica& replica : service.replicas) {
      const auto it = weights_.find(replica.key);
      versions[replica.version][server_name(replica.key)] =
          it == weights_.end() ? kFullWeight : it->second;
    }
    for (const auto& [version, have] : versions)
      for (const auto& [server, weight] : weights_of(have, samples_.replicas(), now))
        weights_[key_of_server(server)] = weight;
  }
}

void Gate::reconcile() {
  if (!has_table_ || !haproxy_) return;
  ReplicaStates states;
  for (const auto& [key, replica] : replicas_) {
    const auto weight = weights_.find(key);
    states[key] = {replica.health, weight == weights_.end() ? kFullWeight : weight->second};
  }
  haproxy_->bring_to(lay_out(table_, states), table_.issuer, keys_);
}

Link::Link(loop::Loop& loop, OnAnswer on_answer)
    : loop_(loop), on_answer_(std::move(on_answer)), thread_([this] { run(); }) {}

Link::~Link() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Link::ask(proto::SyncGate&& question) {
  busy_ = true;
  {
    const std::lock_guard lock(mutex_);
    question_ = std::move(question);
  }
  wake_.notify_one();
}

void Link::run() {
  std::optional<cli::Session> session;
  for (;;) {
    std::optional<proto::SyncGate> question;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ends_ || question_; });
      if (ends_) return;
      question.swap(question_);
    }
    Result<proto::GateTable> answer = fail(ErrorCode::unavailable, "");
    if (!session) {
      auto opened = cli::Session::open("gantry-gate");
      if (opened)
        session.emplace(std::move(*opened));
      else
        answer = tl::unexpected(opened.error());
    }
    if (session) {
      answer = session->call_once<proto::GateTable>(*question, kAnswerTime);
      if (!answer) session.reset();
    }
    loop_.post([this, answer = std::move(answer)]() mutable {
      busy_ = false;
      on_answer_(std::move(answer));
    });
  }
}

}  // namespace gantry::gate
