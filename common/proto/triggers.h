// Triggers (strigger): programs that the controller runs when something happens to a job or to
// nodes. A program runs as the user who set the trigger. Client to ctld; each message is answered
// by TriggerList.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/time/time.h"
#include "common/types.h"

namespace gantry::proto {

enum class TriggerOn : std::uint8_t {
  fini = 1,      // the job is over
  time = 2,      // the job's time limit
  down = 3,      // a node that was up is down
  up = 4,        // a node that was down is up again
  drained = 5,   // nothing runs any more on a drained node
  idle = 6,      // nothing has run on a node for `offset`
  reconfig = 7,  // the controller has read its configuration again
};
constexpr auto enum_names(TriggerOn) {
  return std::array<std::pair<TriggerOn, std::string_view>, 7>{{{TriggerOn::fini, "fini"},
                                                                {TriggerOn::time, "time"},
                                                                {TriggerOn::down, "down"},
                                                                {TriggerOn::up, "up"},
                                                                {TriggerOn::drained, "drained"},
                                                                {TriggerOn::idle, "idle"},
                                                                {TriggerOn::reconfig, "reconfig"}}};
}

struct Trigger {
  TriggerId id{};  // given by the controller
  Uid uid{};       // user who set it; given by the controller
  std::string user;
  std::vector<TriggerOn> on;       // it fires at one of these
  std::optional<JobId> job;        // fini, time: this job; down, up: its nodes
  std::vector<std::string> nodes;  // without a job: these nodes; none = every node
  Duration offset{};       // delay after the event; for `time` also a negative one, before it
  std::string program;     // absolute path
  bool permanent = false;  // stays after it has run
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "id", s.id);
    v(2, "uid", s.uid);
    v(3, "user", s.user);
    v(4, "on", s.on);
    v(5, "job", s.job);
    v(6, "nodes", s.nodes);
    v(7, "offset", s.offset);
    v(8, "program", s.program);
    v(9, "permanent", s.permanent);
  }
};

struct SetTrigger {
  Trigger trigger;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "trigger", s.trigger);
  }
};

// Selects triggers that meet all given conditions.
struct TriggerFilter {
  std::optional<TriggerId> id;
  std::optional<JobId> job;
  std::optional<Uid> uid;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "id", s.id);
    v(2, "job", s.job);
    v(3, "uid", s.uid);
  }
};

struct ListTriggers {
  TriggerFilter filter;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "filter", s.filter);
  }
};

struct ClearTriggers {  // answered by the triggers that were removed
  TriggerFilter filter;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "filter", s.filter);
  }
};

struct TriggerList {
  std::vector<Trigger> triggers;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "triggers", s.triggers);
  }
};

}  // namespace gantry::proto
