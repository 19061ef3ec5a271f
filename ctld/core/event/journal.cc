// The journal's codec: a table of small functions by the kind of the event; see journal.h.
#include "ctld/core/event/journal.h"

#include <array>
#include <memory>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/codec/define.h"
#include "common/codec/msgpack_io.h"
#include "ctld/core/event/events.h"

namespace gantry::core {
namespace {

using codec::MsgReader;
using codec::MsgWriter;

struct EventCodec {
  std::string_view name{};  // "" = no event has this kind number
  const codec::TypeInfo& (*type)() = nullptr;
  void* (*make)(Event& out) = nullptr;  // makes a default event; returns the address of its struct
};

template <class E>
void* make_one(Event& out) {
  auto event = std::make_unique<E>();
  void* const at = event.get();
  out = Event(std::move(event));
  return at;
}

template <class E>
constexpr EventCodec codec_of() {
  return {E::kName, &codec::type_of<E>, &make_one<E>};
}

constexpr auto kCodecs = [] {
  std::array<EventCodec, kEventKinds> all{};
#define X(Name) all.at(event::Name::kKind) = codec_of<event::Name>();
#include "ctld/core/event/events.def"
#undef X
  return all;
}();

constexpr bool kinds_are_unique() {
  std::size_t lines = 0;
  std::size_t kinds = 0;
#define X(Name) ++lines;
#include "ctld/core/event/events.def"
#undef X
  for (const EventCodec& one : kCodecs) kinds += one.make != nullptr ? 1 : 0;
  return lines == kinds;
}
static_assert(kinds_are_unique(), "two lines of events.def have the same kind");

const EventCodec& row_of(EventRef event) {
  const auto kind = static_cast<std::size_t>(event.kind());
  GANTRY_ASSERT(kind < kEventKinds && kCodecs[kind].make != nullptr, "an event of events.def");
  return kCodecs[kind];
}

bool read_event(MsgReader& r, Event& out) {
  std::uint32_t size = 0;
  std::uint64_t kind = 0;
  if (!r.enter() || !r.array(size)) return false;
  if (size != 2) return r.error().fail("expected [kind, fields]");
  if (!r.field_number(kind)) return false;
  if (kind >= kEventKinds || kCodecs[kind].make == nullptr)
    return r.error().fail("unknown kind " + std::to_string(kind));
  const EventCodec& row = kCodecs[kind];
  if (!codec::read_value(r, row.type(), row.make(out))) return r.error().in_field(row.name);
  r.leave();
  return true;
}

bool read_entry(MsgReader& r, JournalEvent& out) {
  std::uint32_t fields = 0;
  if (!r.enter() || !r.map(fields)) return false;
  for (; fields > 0; --fields) {
    std::uint64_t number = 0;
    if (!r.field_number(number)) return false;
    if (number == 1) {
      if (!codec::read_value(r, codec::type_of<Instant>(), &out.at))
        return r.error().in_field("at");
    } else if (number == 2) {
      if (!read_event(r, out.event)) return r.error().in_field("event");
    } else if (!r.skip()) {
      return false;
    }
  }
  r.leave();
  if (out.event.kind() != 0) return true;
  r.error().fail("it is missing");
  return r.error().in_field("event");
}

}  // namespace

Bytes encode_event(Instant at, EventRef event) {
  const EventCodec& row = row_of(event);
  Bytes out;
  out.reserve(256);
  {
    MsgWriter w(out);
    const bool with_time = at != Instant{};  // a field that equals its default is left out
    w.map(with_time ? 2 : 1);
    if (with_time) {
      w.uint(1);
      w.sint(at.us);
    }
    w.uint(2);
    w.array(2);
    w.uint(static_cast<std::uint64_t>(event.kind()));
  }
  codec::encode_value(row.type(), event.value(), out);
  return out;
}

Result<JournalEvent> decode_event(std::string_view bytes) {
  JournalEvent out;
  if (auto error = codec::decode_whole(bytes, [&](MsgReader& r) { return read_entry(r, out); }))
    return tl::unexpected(*std::move(error));
  return out;
}

std::string event_json(Instant at, EventRef event) {
  const EventCodec& row = row_of(event);
  const std::string fields =
      codec::json_of(row.type(), event.value(), codec::JsonStyle::compact);  // {...}
  return fmt::format(R"({{"at":{},"event":{{"kind":"{}"{}{}}})", at.us, row.name,
                     fields == "{}" ? "" : ",", fields.substr(1));
}

}  // namespace gantry::core
