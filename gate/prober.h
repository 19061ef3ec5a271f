// Asks replicas through their doors whether they are ready, and whether they live. All at once, on
// the loop's thread, without waiting.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/fd.h"
#include "common/loop/loop.h"
#include "gate/plan/probe_state.h"

namespace gantry::gate {

// One probe: a GET of `path`, or with "" only a connection.
struct Question {
  std::string address;  // numeric
  std::uint16_t port = 0;
  std::string password;
  std::string host, path;
  Duration timeout = seconds(1);
};

class Prober {
 public:
  using OnAnswer = std::function<void(const ProbeAnswer&)>;
  explicit Prober(loop::Loop& loop) : loop_(loop) {}

  // The answer comes in a later turn. `id` names the question: another one with the same name
  // takes the place of the first, whose answer never comes then.
  void ask(const std::string& id, const Question& question, OnAnswer on_answer);
  void drop(const std::string& id) { running_.erase(id); }

 private:
  struct Probe {
    Fd fd;
    loop::Watch io, limit;
    std::string to_send, head;
    bool asks_only = false;
    OnAnswer on_answer;
  };
  void go_on(const std::string& id);
  void end(const std::string& id, const ProbeAnswer& answer);

  loop::Loop& loop_;
  std::map<std::string, std::unique_ptr<Probe>> running_;
};

}  // namespace gantry::gate
