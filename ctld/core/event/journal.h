// An entry of the journal: an event of any kind, and when it became true. In msgpack it is the map
// {1: at, 2: [kind, {fields}]}; in JSON {"at": at, "event": {"kind": name, fields}}. All kinds have
// their codec in journal.cc.
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"
#include "ctld/core/event/event.h"

namespace gantry::core {

struct JournalEvent {
  Instant at{};
  Event event;
};

Bytes encode_event(Instant at, EventRef event);
// The error malformed names the field, as that of codec::decode().
Result<JournalEvent> decode_event(std::string_view bytes);
std::string event_json(Instant at, EventRef event);

}  // namespace gantry::core
