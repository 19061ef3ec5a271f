// Replays and prints scenarios of the node core; scenario.h describes their language.
#include "tests/noded/scenario.h"

#include <sstream>

#include "common/text/text.h"
#include "noded/core/core.h"
#include "tests/noded/scenario_print.h"

namespace gantry::test {

using namespace gantry::node;  // this file tests exactly this namespace

namespace {

struct Line {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;

  explicit Line(const std::string& text) {
    std::istringstream in(text);
    std::string word;
    while (in >> word) {
      const auto eq = word.find('=');
      if (eq == std::string::npos)
        words.push_back(word);
      else
        options[word.substr(0, eq)] = word.substr(eq + 1);
    }
  }
  [[nodiscard]] bool has(const std::string& word) const {
    return std::find(words.begin(), words.end(), word) != words.end();
  }
  [[nodiscard]] std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    const auto it = options.find(name);
    return it == options.end() ? otherwise : std::stoull(it->second);
  }
  [[nodiscard]] std::optional<Duration> time(const std::string& name) const {
    const auto it = options.find(name);
    if (it == options.end()) return std::nullopt;
    return parse_length(it->second);
  }
  [[nodiscard]] ExitStatus exit() const {
    const auto it = options.find("exit");
    if (it == options.end()) return {};
    const auto colon = it->second.find(':');
    return {std::stoi(it->second), std::stoi(it->second.substr(colon + 1))};
  }
  [[nodiscard]] proto::ExitCause cause() const {
    const auto it = options.find("cause");
    if (it == options.end()) return proto::ExitCause::exited;
    for (const auto& [value, name] : enum_names(proto::ExitCause{}))
      if (name == it->second) return value;
    throw std::runtime_error("unknown cause " + it->second);
  }
  [[nodiscard]] std::vector<AttemptKey> keys(const std::string& name) const {
    std::vector<AttemptKey> out;
    const auto it = options.find(name);
    if (it == options.end()) return out;
    std::istringstream in(it->second);
    std::string one;
    while (std::getline(in, one, ',')) out.push_back(parse_key(one));
    return out;
  }
};

class Player {
 public:
  std::string play(const std::string& text) {
    std::istringstream in(text);
    std::string line;
    while (std::getline(in, line)) {
      if (line.starts_with(" ")) continue;  // an indented line is an answer, which is written anew
      out_ += line + "\n";
      if (line.empty() || line.starts_with("#")) continue;
      run(line);
    }
    return out_;
  }

 private:
  void run(const std::string& text) {
    const Line line(text);
    const std::string& verb = line.words.empty() ? text : line.words[0];
    if (verb == "recovered") return recover(line);
    if (verb == "start") return start(line);
    if (!core_) throw std::runtime_error("no `start` before: " + text);
    if (verb[0] == '+') return pass(parse_length(verb.substr(1)));
    if (verb == "status") return status();
    auto input = parse_event(line, verb);
    if (!input) input = FromController{parse_order(line, verb, text)};
    step(std::move(*input));
  }

  void recover(const Line& line) {
    Recovered r;
    r.key = parse_key(line.words.at(1));
    const std::string& stage = line.words.at(2);
    using enum Recovered::Stage;
    if (stage == "never_started")
      r.stage = never_started;
    else if (stage == "preparing")
      r.stage = preparing;
    else if (stage == "held")
      r.stage = held;
    else if (stage == "running")
      r.stage = running;
    else if (stage == "ended")
      r.stage = ended;
    else
      throw std::runtime_error("unknown stage " + stage);
    if (const auto t = line.time("started")) r.started = at(*t);
    r.exit.cause = line.cause();
    r.exit.status = line.exit();
    r.exit.ended = now_;
    recovered_.push_back(std::move(r));
  }

  void start(const Line& line) {
    Memory memory;
    memory.epoch = Epoch{line.number("epoch", 0)};
    memory.fence_after = line.time("fence");
    if (const auto t = line.time("contact")) memory.last_contact = at(*t);
    proto::NodeRegister facts;
    facts.node = "n1";
    core_ = std::make_unique<Core>(facts, memory, std::exchange(recovered_, {}), now_);
    finish_turn();
  }

  // Advances time as the shell does: calls the core at every time for which it asked.
  void pass(Duration length) {
    const Instant until = now_ + length;
    while (wake_ && *wake_ <= until) {
      now_ = std::max(now_, *wake_);
      step(Wake{});
    }
    now_ = until;
  }

  void status() {
    const auto& c = core_->counters();
    out_ += fmt::format("    {} refused: epoch {} session {} seq {} no effect {}\n",
                        core_->registered() ? "registered" : "not registered", c.old_epoch,
                        c.other_session, c.old_seq, c.no_effect);
    for (const auto& a : core_->attempts())
      out_ += fmt::format("    {} {}\n", show(a.key), enum_name(a.phase));
  }

  [[nodiscard]] std::optional<Input> parse_event(const Line& line, const std::string& verb) const {
    if (verb == "link")
      return line.has("up") ? std::optional<Input>(LinkUp{}) : std::optional<Input>(LinkDown{});
    if (verb == "stop") return Stop{line.has("makes-way")};
    if (verb == "wake") return Wake{};
    if (verb == "not-remembered") return NotRemembered{};
    if (verb == "running") return Running{parse_key(line.words.at(1)), now_};
    if (verb == "ended") {
      Exit exit;
      exit.cause = line.cause();
      exit.status = line.exit();
      exit.ended = now_ - line.time("ago").value_or(Duration{});
      exit.ran = line.time("ran");
      return Ended{parse_key(line.words.at(1)), std::move(exit)};
    }
    if (verb == "held") return node::Held{parse_key(line.words.at(1))};
    if (verb == "begin-failed")
      return BeginFailed{parse_key(line.words.at(1)), "n1 cannot write the launch record"};
    return std::nullopt;
  }

  Order parse_order(const Line& line, const std::string& verb, const std::string& text) {
    if (verb == "accept") return parse_accept(line);
    if (verb == "again") return proto::RegisterAgain{Epoch{line.number("epoch", epoch_)}};
    if (verb == "beat-ack") {
      proto::HeartbeatAck o;
      o.stamp = stamp(line);
      o.stamp.seq = 0;
      --seq_;
      o.heard = line.time("heard") ? at(*line.time("heard")) : now_;
      return o;
    }
    if (verb == "fetch") {
      proto::FetchLog o;
      o.ticket = 1;
      o.path = line.words.at(1);
      return o;
    }
    if (verb == "resume-gpu") return proto::ResumeGpu{stamp(line), line.words.at(1)};
    const AttemptKey key = parse_key(line.words.at(1));
    const auto s = stamp(line);
    if (verb == "tell") return proto::TellAttempt{s, key, line.words.at(2)};
    if (verb == "launch") {
      proto::Launch o;
      o.stamp = s;
      o.key = key;
      o.hold = line.has("hold");
      o.runs_batch = !line.has("holder");
      return o;
    }
    if (verb == "go") return proto::Go{s, key};
    if (verb == "freeze" || verb == "thaw") return proto::Freeze{s, key, verb == "freeze"};
    if (verb == "ack") return proto::AckExit{s, key};
    if (verb == "terminate") {
      const auto notice = line.options.find("notice");
      return proto::Terminate{s, key, line.time("grace").value_or(Duration{}),
                              notice == line.options.end() ? "" : notice->second};
    }
    if (verb == "signal") {
      proto::SignalAttempt o{
          s, key, *parse_signal(line.words.at(2)), proto::SignalScope::steps, {}};
      if (line.number("step", 99) != 99) o.step = StepId(line.number("step", 0));
      for (const auto& [value, name] : enum_names(proto::SignalScope{}))
        if (line.has(std::string(name))) o.scope = value;
      return o;
    }
    throw std::runtime_error("unknown line: " + text);
  }

  Order parse_accept(const Line& line) {
    proto::NodeAccept o;
    epoch_ = line.number("epoch", epoch_);
    session_ = line.number("session", session_);
    seq_ = 0;
    o.stamp = {Epoch{epoch_}, session_, 0};
    o.heartbeat = line.time("heartbeat").value_or(minutes(60));
    o.fence_after = line.time("fence");
    o.kill = line.keys("kill");
    o.forget = line.keys("forget");
    o.heard = line.time("answers") ? at(*line.time("answers")) : asked_;
    return o;
  }

  proto::OrderStamp stamp(const Line& line) {
    const auto seq = line.number("seq", ++seq_);
    return {Epoch{line.number("epoch", epoch_)}, line.number("session", session_), seq};
  }

  void step(Input input) {
    core_->step(now_, std::move(input));
    finish_turn();
  }

  void finish_turn() {
    const Turn turn = core_->take_turn();
    wake_ = turn.wake;
    const auto when = format_at(now_);
    for (const auto& a : turn.actions) out_ += fmt::format("    {} do {}\n", when, show(a));
    for (const auto& m : turn.messages) {
      if (const auto* r = std::get_if<proto::NodeRegister>(&m)) asked_ = r->sent;
      out_ += fmt::format("    {} send {}\n", when, show(m));
    }
  }

  // Scenario time begins an hour after zero, so that earlier times can be written.
  static Instant at(Duration d) { return kScenarioStart + d; }

  std::string out_;
  std::unique_ptr<Core> core_;
  std::vector<Recovered> recovered_;
  Instant now_ = kScenarioStart;
  Instant asked_{};
  std::optional<Instant> wake_;
  std::uint64_t epoch_ = 1, session_ = 1, seq_ = 0;
};

}  // namespace

std::string replay(const std::string& text) {
  return Player{}.play(text);
}

}  // namespace gantry::test
