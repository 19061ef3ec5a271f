// Subject: what one subject of the core has to say at the moments that concern all of them: when
// the controller starts, when a job may start, when somebody asks why it does not, and when time
// alone has to be acted on; and the messages that it handles. Each folder declares its subjects in
// its subject.h; turn/subjects.cc is the one table of them. A member that a subject does not need
// is null.
//
// The order of the table is the order in which checks run, lines are shown and ring() is called.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_state.h"
#include "common/result.h"
#include "ctld/core/context.h"

namespace gantry::core {

class Sight;

// A question of a user why a job waits (`gctl why`).
struct WhyAsked {
  const Context& ctx;
  const Job& job;
  const Sight* sight = nullptr;  // what the asker may see; null = everything
  std::vector<std::string>& out;
  void (*say)(const WhyAsked&, const Verdict&) = nullptr;  // adds the verdict's own line
};

// A kind of message, and the function that handles it: messages.def says who sends it, and so which
// of the two is set. handler.h makes these.
struct Handler {
  proto::MessageType type;
  void (*of_client)(Context&, const ClientRequest&, proto::AnyMessage&&) = nullptr;
  void (*of_node)(Context&, NodeId, proto::AnyMessage&&) = nullptr;
};

struct Subject {
  std::string_view name;
  std::span<const Handler> handlers{};
  // Called once when the controller starts, before settle() looks at all jobs and nodes.
  void (*start)(Context&) = nullptr;
  // Called once after settle() has looked at them.
  void (*started)(Context&) = nullptr;

  // Returns why the queued job may not start now, or nullopt. Resources do not matter here.
  std::optional<Verdict> (*check)(const Context&, const Job&) = nullptr;
  // Returns how many tasks of an array may start now.
  std::uint32_t (*tasks)(const Context&, const Job& array) = nullptr;
  // If set, the scheduler gets the job even if `check` objects, and another part of the core checks
  // each start for this subject.
  bool looks_later = false;
  // Adds the lines of `gctl why`; `verdict` is what `check` returned. If null, the verdict's own
  // line is the only one.
  void (*words)(const WhyAsked&, const std::optional<Verdict>& verdict) = nullptr;

  // Returns when ring() has something to do next. If `ring` is null, the turn that begins at that
  // time does it.
  std::optional<Instant> (*due)(const Context&) = nullptr;
  void (*ring)(Context&) = nullptr;
};

// All subjects, in their order.
std::span<const Subject* const> subjects();

// Fails if a message of messages.def that is for the core has no handler or several, or if a
// handler's message is not for the core.
Result<void> sound(std::span<const Subject* const> all);

}  // namespace gantry::core
