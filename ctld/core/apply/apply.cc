// apply() finds the function of an event by its kind; see apply.h.
#include "ctld/core/apply.h"

#include <array>

#include "common/assert.h"
#include "ctld/core/event/events.h"

namespace gantry::core {
namespace {

using Apply = void (*)(MutableState&, Instant, const void* event);

// An event without an apply_event() of its own fails to link.
constexpr auto kApply = [] {
  std::array<Apply, kEventKinds> all{};
#define X(Name)                                                                         \
  all.at(event::Name::kKind) = [](MutableState& state, Instant at, const void* event) { \
    apply_event(state, at, *static_cast<const event::Name*>(event));                    \
  };
#include "ctld/core/event/events.def"
#undef X
  return all;
}();

}  // namespace

void apply(MutableState& state, Instant at, EventRef event) {
  const auto kind = static_cast<std::size_t>(event.kind());
  GANTRY_ASSERT(kind < kEventKinds && kApply[kind] != nullptr, "an event of events.def");
  state.last_time = at;
  state.unfolded.meta = true;
  kApply[kind](state, at, event.value());
}

}  // namespace gantry::core
